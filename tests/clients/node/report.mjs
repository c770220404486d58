// What a client program tells the test that started it: one JSON object on each line of standard output.

import { subscribe } from 'node:diagnostics_channel'
import { readFileSync, writeSync } from 'node:fs'

/** Writes one line at once: the test may be waiting for it while the stream goes on. */
export function tell(line) {
  writeSync(1, JSON.stringify(line) + '\n')
}

/** The first line: which client this is, and which other packages belong to it. */
export function client(name, others = []) {
  const more = others.map((other) => `, ${other} ${version(other)}`)
  tell({ client: name, version: [version(name), ...more].join('') })
}

function version(name) {
  const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url)
  return JSON.parse(readFileSync(manifest)).version
}

/** Tells of every request that leaves this process and of every answer, without touching the client. */
export function watchRequests() {
  subscribe('undici:request:create', ({ request }) => {
    tell({ request: `${request.method} ${request.path}`, cursor: field(request.headers, 'last-event-id') })
  })
  subscribe('undici:request:headers', ({ response }) => tell({ status: response.statusCode }))
}

/** The request's fields as Node 20 gives them, a flat list of names and values. */
function field(headers, name) {
  const at = headers.findIndex((word, index) => index % 2 === 0 && String(word).toLowerCase() === name)
  return at < 0 ? null : String(headers[at + 1])
}
