// A page's use of EventSource, with the npm package of that name.
//
// Opens BASE_URL with the path of its first argument, listens (the others name events), and never closes it: the process
// ends when nothing is left that could reconnect.

import { EventSource } from 'eventsource'

import { client, tell, watchRequests } from './report.mjs'

// The library lets a process end while it waits to reconnect, as suits a server. Here that would look like an end.
const { setTimeout } = globalThis
globalThis.setTimeout = (...call) => {
  const timer = setTimeout(...call)
  timer.unref = () => timer
  return timer
}

client('eventsource')
watchRequests()
const source = new EventSource(process.env.BASE_URL + process.argv[2])
const told = ({ type, data, lastEventId }) => tell({ event: type, data, id: lastEventId })
source.onmessage = told
for (const name of process.argv.slice(3)) source.addEventListener(name, told)
source.onerror = (event) => {
  // The same name stands for an event of the stream that is named `error`, and for trouble with the connection.
  if (event.data !== undefined) told(event)
  else tell({ trouble: event.message ?? null, state: source.readyState })
}
