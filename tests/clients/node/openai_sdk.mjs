// An application on the OpenAI SDK for JavaScript, with the defaults of the SDK.
//
// Makes one streaming request for each argument, one after the other, and tells what it saw of each: `chat`,
// `chat_helper`, `completions`, `responses`. BASE_URL is where it sends them.

import OpenAI from 'openai'

import { client, tell } from './report.mjs'

const openai = new OpenAI({ baseURL: `${process.env.BASE_URL}/v1`, apiKey: 'test' })
const CHAT = { model: 'mock', messages: [{ role: 'user', content: 'hi' }] }
const COMPLETION = { model: 'mock', prompt: 'hi' }
const RESPONSE = { model: 'mock', input: 'hi' }

async function read({ data: stream, response }) {
  tell({ head: response.headers.get('x-streamweld-stream-id') })
  let finish = null
  for await (const chunk of stream) {
    const choice = chunk.choices[0]
    const text = choice?.text ?? choice?.delta?.content
    if (text) tell({ text })
    finish = choice?.finish_reason ?? finish
  }
  tell({ whole: finish })
}

const runs = {
  chat: async () => read(await openai.chat.completions.create({ ...CHAT, stream: true }).withResponse()),

  completions: async () => read(await openai.completions.create({ ...COMPLETION, stream: true }).withResponse()),

  async responses() {
    const { data: stream, response } = await openai.responses.create({ ...RESPONSE, stream: true }).withResponse()
    tell({ head: response.headers.get('x-streamweld-stream-id') })
    let finish = null
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') tell({ text: event.delta })
      if (event.type === 'response.completed') finish = event.response.status
    }
    tell({ whole: finish })
  },

  async chat_helper() {
    const stream = openai.chat.completions.stream(CHAT)
    stream.on('content', (text) => tell({ text }))
    const final = await stream.finalChatCompletion()
    tell({ whole: final.choices[0].finish_reason })
  },
}

client('openai')
for (const name of process.argv.slice(2)) {
  try {
    await runs[name]()
  } catch (error) {
    tell({ raised: error.constructor.name, message: `${error.message}${error.cause ? `: ${error.cause.message}` : ''}` })
  }
}
