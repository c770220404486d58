// An application on the AI SDK with its providers for OpenAI, for what is compatible with it, and for Anthropic, with
// the defaults of the SDK.

import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { jsonSchema, streamText, tool } from 'ai'

import { serve } from './application.mjs'

const tools = {
  tide: tool({
    description: 'When the tide is high.',
    inputSchema: jsonSchema({ type: 'object', properties: { place: { type: 'string' } }, required: ['place'] }),
  }),
}

async function read(run, model) {
  let trouble
  const onError = ({ error }) => {
    trouble ??= error
  }
  const result = streamText({ model, tools, prompt: 'hi', onError })
  try {
    for await (const part of result.fullStream) {
      run.object(part)
      if (part.type === 'text-delta') run.text(part.text)
    }
    return await result.finishReason
  } catch (error) {
    // `onError` is told the cause, and the promises are told that there was one.
    throw trouble ?? error
  }
}

const openai = (run) => createOpenAI({ baseURL: `${run.base}/v1`, apiKey: 'test' })

const ways = {
  openai_chat: (run) => read(run, openai(run).chat('mock')),
  openai_responses: (run) => read(run, openai(run).responses('mock')),
  compatible: (run) =>
    read(run, createOpenAICompatible({ name: 'mock', baseURL: `${run.base}/v1`, apiKey: 'test' })('mock')),
  anthropic: (run) => read(run, createAnthropic({ baseURL: `${run.base}/v1`, apiKey: 'test' })('mock')),
}

serve('ai', ways, ['@ai-sdk/openai', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic'])
