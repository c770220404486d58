/** What the server said instead of a stream. */
export class Refused extends Error {
  constructor(response, body) {
    super(`refused with status ${response.status}`)
    this.status = response.status
    this.body = body
  }
}

/**
 * Sends a request, and yields the events of its answer as `{ event, data, id }`: each once and in order, however often the
 * connection is lost. Throws `Refused`, or after `tries` in a row that brought nothing new what the last one threw.
 */
export async function* events(url, init = {}, { wait = 1000, tries = 10, onLost = () => {} } = {}) {
  const headers = new Headers(init.headers)
  // Before its first event there is no id to come back with. With a key, the repeat of a POST joins the first one.
  if (init.method === 'POST') headers.set('x-streamweld-idempotency-key', crypto.randomUUID())
  for (let left = tries; ; left -= 1) {
    try {
      const response = await fetch(url, { ...init, headers })
      if (response.status === 204) return // there is nothing left to be read
      // A resume may have to wait for a server that is busy; anything else is an answer.
      if (response.status >= 500 && headers.has('last-event-id')) throw new Error(`status ${response.status}`)
      if (!response.ok) throw new Refused(response, await response.text())
      let last = null
      for await (const event of blocks(response.body)) {
        if (event.id) headers.set('last-event-id', event.id)
        left = tries
        last = event
        yield event
      }
      // A connection that is lost in the head of an answer can look like the end of its body. So the end is a 204, but where
      // there are no ids to come back with (a degraded answer).
      if (!last) throw new Error('an answer without an event')
      if (!last.id) return
      continue
    } catch (error) {
      if (error instanceof Refused || init.signal?.aborted || left <= 1) throw error
      onLost(error)
    }
    await new Promise((resolve) => setTimeout(resolve, wait))
  }
}

/** The whole events in a body. What it breaks off in is none. */
async function* blocks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += value
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) yield parse(text.slice(0, end))
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

function parse(block) {
  const event = { event: 'message', data: [], id: null }
  for (const line of block.split('\n')) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? []
    if (field === 'data') event.data.push(value)
    else if (field === 'event' || field === 'id') event[field] = value
  }
  return { ...event, data: event.data.join('\n') }
}
