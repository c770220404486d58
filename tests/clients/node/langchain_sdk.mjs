// An application on the OpenAI models of LangChain for JavaScript, with their defaults.

import { ChatOpenAI } from '@langchain/openai'

import { serve } from './application.mjs'

async function read(run, more) {
  const model = new ChatOpenAI({
    model: 'mock',
    apiKey: 'test',
    n: run.n,
    configuration: { baseURL: `${run.base}/v1` },
    ...more,
  })
  let finish
  for await (const chunk of await model.stream('hi')) {
    run.object(chunk.toJSON())
    run.text(chunk.text)
    finish = chunk.response_metadata.finish_reason ?? chunk.response_metadata.status ?? finish
  }
  return finish
}

serve('@langchain/openai', {
  chat: (run) => read(run, {}),
  responses: (run) => read(run, { useResponsesApi: true }),
})
