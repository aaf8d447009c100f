import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { cannotInject } from '../../helpers/inject.ts'

const LOOKUPS = join(import.meta.dirname, '../../../src/kernel/linux/lookups.ts')
const LOOKUP_SCRIPT = `
  const { openSync } = await import('node:fs')
  const { lookUpName } = await import(${JSON.stringify(LOOKUPS)})
  console.log((await lookUpName(openSync('/', 'r'), Buffer.from('tmp'), 1000)) !== undefined)`

describe.skipIf(cannotInject !== '')(`a daemon that is checked${cannotInject && `: ${cannotInject}`}`, () => {
  // fork(3) calls clone(2), and a thread is created by clone3(2).
  it.each(['ENOMEM', 'EAGAIN'])('does not count as unresponsive if no process can be created: %s', async (code) => {
    const inject = ['-f', '-q', '-e', 'trace=clone', '-e', `inject=clone:error=${code}`]
    const node = [process.execPath, '--input-type=module', '-e', LOOKUP_SCRIPT]
    const { stdout, stderr } = await promisify(execFile)('strace', [...inject, ...node], { timeout: 600_000 })
    expect(stderr).toMatch(new RegExp(`clone\\(.*${code}.*INJECTED`))
    expect(stdout).toBe('true\n')
  })
})
