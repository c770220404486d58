// An application on the OpenAI SDK for JavaScript, with the defaults of the SDK.

import OpenAI from 'openai'

import { serve } from './application.mjs'

const messages = [{ role: 'user', content: 'hi' }]
const client = (run) => new OpenAI({ baseURL: `${run.base}/v1`, apiKey: 'test' })

/** Chunks of chat or completions. */
async function chunks(run, { data, response }) {
  run.head(response.headers)
  let finish
  for await (const chunk of data) {
    run.object(chunk)
    for (const choice of chunk.choices) {
      if (choice.index !== 0) continue
      run.text(choice.text ?? choice.delta?.content)
      finish = choice.finish_reason ?? finish
    }
  }
  return finish
}

function see(run, event) {
  run.object(event)
  if (event.type === 'response.output_text.delta') run.text(event.delta)
}

serve('openai', {
  async chat(run) {
    const asked = client(run).chat.completions.create({ model: 'mock', messages, n: run.n, stream: true })
    return chunks(run, await asked.withResponse())
  },

  async chat_helper(run) {
    const stream = client(run).chat.completions.stream({ model: 'mock', messages, n: run.n })
    for await (const chunk of stream) {
      run.object(chunk)
      for (const { index, delta } of chunk.choices) if (index === 0) run.text(delta.content)
    }
    const final = await stream.finalChatCompletion()
    run.object(final)
    return final.choices[0].finish_reason
  },

  async completions(run) {
    const asked = client(run).completions.create({ model: 'mock', prompt: 'hi', n: run.n, stream: true })
    return chunks(run, await asked.withResponse())
  },

  async responses(run) {
    const asked = client(run).responses.create({ model: 'mock', input: 'hi', stream: true })
    const { data, response } = await asked.withResponse()
    run.head(response.headers)
    let finish
    for await (const event of data) {
      see(run, event)
      if (event.type === 'response.completed' || event.type === 'response.incomplete') finish = event.response.status
    }
    return finish
  },

  async responses_helper(run) {
    const stream = client(run).responses.stream({ model: 'mock', input: 'hi' })
    for await (const event of stream) see(run, event)
    const final = await stream.finalResponse()
    run.object(final)
    return final.status
  },
})
