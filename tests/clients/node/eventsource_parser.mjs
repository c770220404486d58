// An application that reads a chat with `fetch` and eventsource-parser, and takes an answer for whole when its body has
// come to its end.

import { EventSourceParserStream } from 'eventsource-parser/stream'

import { serve } from './application.mjs'

serve('eventsource-parser', {
  async chat(run) {
    const response = await fetch(`${run.base}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'mock', messages: [{ role: 'user', content: 'hi' }], n: run.n, stream: true }),
    })
    run.head(response.headers)
    let finish
    const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    for await (const event of events) {
      run.object(event)
      if (event.data === '[DONE]') continue
      for (const choice of JSON.parse(event.data).choices ?? []) {
        if (choice.index !== 0) continue
        run.text(choice.delta.content)
        finish = choice.finish_reason ?? finish
      }
    }
    return finish
  },
})
