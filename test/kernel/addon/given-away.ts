/**
 * `node given-away.ts ADDON FILE END`: environments give all their jobs to other threads and end at once, in one of the
 * ways below. The last environment is the process itself.
 */
import * as fs from 'node:fs'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import type { KernelAddon } from '../../../src/kernel/linux/kernel.ts'

const [addon = '', file = '', end = ''] = process.argv.slice(2)
const [JOBS, CHANGES, WORDS, HANDLE] = [48, 1200, 10, 2]
const TEST_ROUNDS = 8

function giveAway(): KernelAddon {
  const loaded = { exports: {} as KernelAddon }
  process.dlopen(loaded, addon)
  const { changes, start } = loaded.exports
  const words = new Uint32Array(changes)
  const handle = fs.openSync(file, 'r')
  for (let at = 0; at < JOBS * CHANGES; at++)
    words.set([handle, 5 + (at % 2), 0o100640, 6 - (at % 2), 0o640, 0], at * WORDS + HANDLE)
  for (let job = 0; job < JOBS; job++) start(job, CHANGES, 1)
  return loaded.exports
}

const ENDS: Record<string, (addon: KernelAddon) => void> = {
  returns() {},
  exits: () => process.exit(),
  throws() {
    throw new Error('an end')
  },
  'is terminated': () => parentPort?.postMessage('end me'),
  'is terminated while it waits'({ finish }) {
    parentPort?.postMessage('end me')
    for (let job = 0; ; job = (job + 1) % JOBS) finish(job)
  },
  'has waited for some'({ finish }) {
    for (let job = 0; job < JOBS; job += 5) finish(job)
    process.exit()
  },
}

function endOnce(): Promise<void> {
  const worker = new Worker(import.meta.filename, { argv: [addon, file, end] })
  worker.on('error', () => {})
  worker.on('message', () => void worker.terminate())
  return new Promise((resolve) => worker.once('exit', () => resolve()))
}

if (isMainThread) {
  for (let round = 0; round < TEST_ROUNDS; round++) await endOnce()
  console.log('alive')
  giveAway()
  process.exit()
} else ENDS[end]?.(giveAway())
