// An application on the Anthropic SDK for JavaScript, with the defaults of the SDK.

import Anthropic from '@anthropic-ai/sdk'

import { serve } from './application.mjs'

const message = { model: 'mock', max_tokens: 4096, temperature: 0, messages: [{ role: 'user', content: 'hi' }] }
const client = (run) => new Anthropic({ baseURL: run.base, apiKey: 'test' })

/** Tells of an event; gives its stop reason, if there is one. */
function see(run, event) {
  run.object(event)
  if (event.type === 'content_block_delta') run.text(event.delta.text)
  return event.type === 'message_delta' ? event.delta.stop_reason : undefined
}

serve('@anthropic-ai/sdk', {
  async messages(run) {
    const { data, response } = await client(run).messages.create({ ...message, stream: true }).withResponse()
    run.head(response.headers)
    let finish
    for await (const event of data) finish = see(run, event) ?? finish
    return finish
  },

  async helper(run) {
    const stream = client(run).messages.stream(message)
    for await (const event of stream) see(run, event)
    const final = await stream.finalMessage()
    run.object(final)
    return final.stop_reason
  },
})
