/**
 * Shows the stream of a resume URL: `onEvent` gets each event once and in order, however often the connection is lost, and
 * then `onEnd` or `onRefused` is called. `names` are those of the events that are not called `message`.
 */
export function watch(url, { onEvent, onEnd, onRefused, onLost = () => {}, names = [], wait = 1000, tries = 10 }) {
  let last = null
  let left = tries

  const address = () => {
    const address = new URL(url, location.href)
    if (last) address.searchParams.set('last_event_id', last)
    return address
  }

  const told = ({ type, data, lastEventId }) => {
    last = lastEventId || last
    left = tries
    onEvent({ event: type, data, id: lastEventId })
  }

  const open = () => {
    // It comes back by itself when its connection is lost.
    const source = new EventSource(address())
    source.onmessage = told
    for (const name of names) source.addEventListener(name, told)
    source.onerror = (trouble) => {
      // Two things have this name: an event of the stream that says it failed, and trouble with the connection.
      if (trouble.data !== undefined) told(trouble)
      else if (source.readyState === EventSource.CLOSED) ask()
      else onLost()
    }
  }

  // It has closed itself for good, and does not say why: it does so at the end and at any answer that is no stream.
  const ask = async () => {
    const asked = new AbortController()
    try {
      const { status } = await fetch(address(), { signal: asked.signal })
      if (status === 204) return onEnd()
      if (status >= 400 && status < 500) return onRefused(status)
    } catch {
      // A fetch that is refused by the browser looks like a lost connection.
    } finally {
      asked.abort()
    }
    if ((left -= 1) === 0) return onRefused(null)
    onLost()
    setTimeout(open, wait)
  }

  open()
}
