import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { ISOLATED_WORKER_VERB } from '../../src/kernel/worker-process.ts'
import { MODEKEEP } from './modekeep.ts'

const isBuilt = fs.existsSync(MODEKEEP)
const built = (name: string) => (isBuilt ? name : `${name} (skipped: there is no ${MODEKEEP}; run "npm run build")`)

/** @param fourth what it has as its fourth descriptor @param input the first line of its stdin */
async function called(fourth: number, caller: number, input: string) {
  const child = spawn(MODEKEEP, [ISOLATED_WORKER_VERB, String(caller)], {
    stdio: ['pipe', 'pipe', 'pipe', fourth],
    env: {},
  })
  let said = ''
  child.stdout?.on('data', (data) => {
    said += data
  })
  child.stdin?.end(input)
  const status = await new Promise((done) => child.once('close', done))
  return { said, status }
}

const directory = fs.openSync(import.meta.dirname, 'r')

it.skipIf(!isBuilt)(built("the isolated worker's verb is unknown for a process that is not its caller"), async () => {
  const { said, status } = await called(directory, process.pid + 1, '{}\n')
  expect([said, status]).toEqual(['', 2])
})

it.skipIf(!isBuilt)(built('an isolated worker without a task ends without an effect'), async () => {
  expect(await called(directory, process.pid, '')).toEqual({ said: '', status: 1 })
})
