import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { ERRAND } from '../../src/host/errand.ts'
import { MODEKEEP } from './modekeep.ts'

const isBuilt = fs.existsSync(MODEKEEP)
const built = (name: string) => (isBuilt ? name : `${name} (skipped: there is no ${MODEKEEP}; run "npm run build")`)
const NOT_SUPPORTED = { status: 'Not supported', message: `modekeep has no verb "${ERRAND}"` }

/** @param fourth what it has as its fourth descriptor @param input the first line of its stdin */
async function called(fourth: number | 'ignore', input: string) {
  const child = spawn(MODEKEEP, [ERRAND], { stdio: ['pipe', 'pipe', 'pipe', fourth], env: {} })
  let said = ''
  child.stdout?.on('data', (data) => {
    said += data
  })
  child.stdin?.end(input)
  const status = await new Promise((done) => child.once('close', done))
  return { said, status }
}

it.skipIf(!isBuilt).each([
  ['nothing', 'ignore'],
  ['a file', fs.openSync(import.meta.filename, 'r')],
] as const)(built('an errand is no verb for who hands on %s'), async (_, fourth) => {
  const { said, status } = await called(fourth, '{}\n')
  expect([JSON.parse(said), status]).toEqual([NOT_SUPPORTED, 0])
})

it.skipIf(!isBuilt)(built('an errand without an order ends, and does nothing'), async () => {
  const directory = fs.openSync(import.meta.dirname, 'r')
  expect(await called(directory, '')).toEqual({ said: '', status: 1 })
  fs.closeSync(directory)
})
