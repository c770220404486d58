// Many streams at once with one of the clients that reconnect by themselves: `many.mjs CLIENT STREAMS`.
//
// STREAMS is JSON, a list of `{ url, body, key }`; one with a body is a POST with that idempotency key, as docs/clients.md
// advises. Tells of each stream, once it is over: its events, and the cursor and the status of each of its requests.

import { createEventSource } from 'eventsource-client'
import { EventSource } from 'eventsource'
import fes from '@microsoft/fetch-event-source'

import { client, tell } from './report.mjs'

// What one of them needs of a page.
globalThis.window = globalThis
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }

const requestOf = ({ body, key }) =>
  body ? { method: 'POST', body, headers: { 'content-type': 'application/json', 'idempotency-key': key } } : {}

// Each resolves when its client has stopped by itself.
const clients = {
  eventsource: ({ url }, { fetch, told }) =>
    new Promise((stopped) => {
      const source = new EventSource(url, { fetch })
      source.onmessage = ({ data, lastEventId }) => told(data, lastEventId)
      source.onerror = () => source.readyState === EventSource.CLOSED && stopped()
    }),

  async 'eventsource-client'(stream, { fetch, told }) {
    const source = createEventSource({ url: stream.url, fetch, ...requestOf(stream) })
    for await (const { data, id } of source) told(data, id)
  },

  '@microsoft/fetch-event-source': (stream, { fetch, told }) =>
    fes.fetchEventSource(stream.url, {
      ...requestOf(stream),
      fetch,
      openWhenHidden: true,
      onmessage: ({ data, id }) => told(data, id),
    }),
}

const [name, streams] = process.argv.slice(2)
client(name)
// `eventsource` lets a process end while it waits to reconnect, as suits a server.
const alive = setInterval(() => {}, 1000)
await Promise.all(
  JSON.parse(streams).map(async (stream, number) => {
    const seen = { stream: number, events: [], cursors: [], statuses: [] }
    const watched = async (url, init) => {
      seen.cursors.push(new Headers(init.headers).get('last-event-id'))
      const response = await fetch(url, init)
      seen.statuses.push(response.status)
      return response
    }
    await clients[name](stream, { fetch: watched, told: (data, id) => seen.events.push([data, id]) })
    tell(seen)
  }),
)
clearInterval(alive)
