// An application on the OpenAI SDK for JavaScript that resumes a response by the SDK's own calls.
//
// Asks for a response and is cut off. Then it goes on in the way that its argument names: `retrieve` or `stream`. In the
// end it asks once more behind the last event. Tells the numbers of all events, and what it saw of each part. BASE_URL is
// where it sends its requests.

import OpenAI from 'openai'

import { client, tell } from './report.mjs'

const openai = new OpenAI({ baseURL: `${process.env.BASE_URL}/v1`, apiKey: 'test' })
const read = { name: null, number: null }

async function take(stream) {
  for await (const event of stream) {
    if (event.type === 'response.created') read.name = event.response.id
    read.number = event.sequence_number
    tell({ number: event.sequence_number })
    if (event.type === 'response.output_text.delta') tell({ text: event.delta })
    if (event.type === 'response.completed') tell({ whole: event.response.status })
  }
}

async function told(run) {
  try {
    await run()
  } catch (error) {
    tell({ raised: error.constructor.name, message: error.message })
  }
}

const ways = {
  retrieve: async () => take(await openai.responses.retrieve(read.name, { stream: true, starting_after: read.number })),
  stream: () => take(openai.responses.stream({ response_id: read.name, starting_after: read.number })),
}

client('openai')
await told(async () => take(await openai.responses.create({ model: 'mock', input: 'hi', stream: true })))
await told(async () => {
  const resume = ways[process.argv[2]]
  await resume()
  tell({ again: read.number })
  await resume()
  tell({ over: true })
})
