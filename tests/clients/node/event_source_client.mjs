// An application's use of eventsource-client: sends `METHOD PATH BODY` (its arguments) to BASE_URL, and ends when that
// has stopped by itself.

import { createEventSource } from 'eventsource-client'

import { client, tell, watchRequests } from './report.mjs'

client('eventsource-client')
watchRequests()
const [method, path, body] = process.argv.slice(2)
const headers = body ? { 'content-type': 'application/json' } : {}
const source = createEventSource({ url: process.env.BASE_URL + path, method, body, headers })
for await (const { event, data, id } of source) tell({ event: event ?? 'message', data, id })
tell({ resolved: true })
