// An application on the Google Gen AI SDK for JavaScript, with the defaults of the SDK.

import { GoogleGenAI } from '@google/genai'

import { serve } from './application.mjs'

serve('@google/genai', {
  async generate(run) {
    const ai = new GoogleGenAI({ apiKey: 'test', httpOptions: { baseUrl: run.base } })
    let finish
    for await (const chunk of await ai.models.generateContentStream({ model: 'mock', contents: 'hi' })) {
      run.object(chunk)
      for (const candidate of chunk.candidates ?? []) {
        if (candidate.index) continue
        for (const part of candidate.content?.parts ?? []) run.text(part.text)
        finish = candidate.finishReason
      }
    }
    return finish
  },
})
