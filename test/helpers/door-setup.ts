import { createHash } from 'node:crypto'
import { afterAll, beforeEach, expect } from 'vitest'
import { DOOR_RUN, NOT_DRAWN } from './door-run.ts'
import { readSeed } from './door-seed.ts'
import { completedCalls } from './resident-door.ts'

const SHARE = 10
let runTests = 0

beforeEach(({ task, skip }) => {
  if (DOOR_RUN === 'tenth' && task.file.name.startsWith('test/attacks/') && !isDrawn(`${task.file.name} ${task.name}`))
    skip(NOT_DRAWN)
  runTests++
})

function isDrawn(name: string): boolean {
  return createHash('sha256').update(`${readSeed()} ${name}`).digest().readUInt32BE() % SHARE === 0
}

afterAll(() => {
  const file = expect.getState().testPath?.split('/').at(-1)
  if (runTests > 0 && file !== 'door.test.ts')
    process.stdout.write(`${file}: a resident worker completed ${completedCalls} calls\n`)
  if (DOOR_RUN !== 'all' || runTests === 0 || completedCalls > 0) return
  throw new Error(`${file}: no call went to a resident worker; name the reason in test/attacks/without-door.ts`)
})
