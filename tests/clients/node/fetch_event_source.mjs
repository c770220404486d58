// An application's use of @microsoft/fetch-event-source, with its default handlers unless said otherwise.
//
// Sends `METHOD PATH BODY` (its arguments) to BASE_URL and tells what it saw. LIMIT: after so many requests in all it
// is taken for one that would go on for ever, and aborted. CURSOR: the last event ID of an earlier visit.
// STOP_AT_204: with the one handler that docs/clients.md advises.

import fes from '@microsoft/fetch-event-source'

import { client, tell, watchRequests } from './report.mjs'

// It was made for pages; what it needs of one.
globalThis.window = globalThis
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }

client('@microsoft/fetch-event-source')
watchRequests()
const [method, path, body] = process.argv.slice(2)
const headers = { 'content-type': 'application/json' }
if (process.env.CURSOR) headers['last-event-id'] = process.env.CURSOR
const controller = new AbortController()
let requests = 0
const counted = (...call) => {
  requests += 1
  if (requests > Number(process.env.LIMIT ?? Infinity)) {
    tell({ endless: true })
    controller.abort()
  }
  return fetch(...call)
}
const advised = {
  async onopen(response) {
    if (response.status === 204) controller.abort()
    else if (!response.ok) throw new Error(`status ${response.status}`)
  },
}
await fes.fetchEventSource(process.env.BASE_URL + path, {
  method,
  body,
  headers,
  openWhenHidden: true,
  signal: controller.signal,
  fetch: counted,
  ...(process.env.STOP_AT_204 ? advised : {}),
  onmessage: ({ event, data, id }) => tell({ event: event || 'message', data, id }),
  onclose: () => tell({ closed: true }),
})
tell({ resolved: true })
