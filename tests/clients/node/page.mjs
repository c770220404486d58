// A page in a headless Chromium, led by lines: each that comes in is an expression, and its value goes out as JSON.
//
// Arguments: the address of the page, its width, its height, the colour scheme that it is to prefer. A line that begins with
// `shot ` has the page drawn into that file. What the page throws, and what its policy forbids, is told at the end, when
// the input has ended.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import WebSocket from 'ws'

const [url, width, height, scheme] = process.argv.slice(2)
const profile = await mkdtemp(join(tmpdir(), 'streamweld-page-'))
const browser = spawn(process.env.CHROMIUM ?? 'chromium', [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--no-first-run', '--no-proxy-server', '--remote-debugging-port=0',
  `--user-data-dir=${profile}`, 'about:blank',
], { stdio: ['ignore', 'ignore', 'pipe'] })
process.on('exit', () => browser.kill('SIGKILL'))
// Whoever leads it waits for its end, and no story takes so long.
setTimeout(() => process.exit(1), 180_000).unref()

/** Where it is led from, which it says once it stands. */
const place = await new Promise((found, failed) => {
  browser.once('error', failed)
  createInterface({ input: browser.stderr }).on('line', (line) => {
    const told = /DevTools listening on (ws:.*)$/.exec(line)
    if (told) found(told[1])
  })
})

const socket = new WebSocket(place, { perMessageDeflate: false })
await new Promise((open) => socket.once('open', open))
const waiting = new Map()
const faults = []
let calls = 0
let session
let loaded
const load = new Promise((done) => (loaded = done))
function call(method, params = {}) {
  const id = ++calls
  socket.send(JSON.stringify({ id, method, params, sessionId: session }))
  return new Promise((done) => waiting.set(id, done))
}
socket.on('message', (text) => {
  const { id, method, params, result, error } = JSON.parse(text)
  if (id) {
    waiting.get(id)?.(error ? { error } : result)
    waiting.delete(id)
  } else if (method === 'Page.loadEventFired') {
    loaded()
  } else if (method === 'Runtime.exceptionThrown') {
    faults.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text)
  } else if (method === 'Log.entryAdded' && params.entry.source === 'security') {
    faults.push(params.entry.text)
  }
})

const { targetInfos } = await call('Target.getTargets')
const { targetId } = targetInfos.find((target) => target.type === 'page')
session = (await call('Target.attachToTarget', { targetId, flatten: true })).sessionId
await call('Runtime.enable')
await call('Log.enable')
await call('Page.enable')
await call('Emulation.setDeviceMetricsOverride', { width: +width, height: +height, deviceScaleFactor: 1, mobile: false })
await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
await call('Page.navigate', { url })
// Expressions of before it would be about no page.
await load
console.log(JSON.stringify({ ready: true }))

for await (const line of createInterface({ input: process.stdin })) {
  if (line.startsWith('shot ')) {
    const { data } = await call('Page.captureScreenshot')
    await writeFile(line.slice(5), data, 'base64')
    console.log('null')
    continue
  }
  const { result, exceptionDetails, error } = await call('Runtime.evaluate', {
    expression: line, returnByValue: true, awaitPromise: true,
  })
  const fault = error?.message ?? exceptionDetails?.exception?.description ?? exceptionDetails?.text
  console.log(JSON.stringify(fault ? { fault } : { value: result?.value ?? null }))
}
console.log(JSON.stringify({ faults }))
await call('Browser.close')
socket.close()
await rm(profile, { recursive: true, force: true, maxRetries: 5 })
process.exit(0)
