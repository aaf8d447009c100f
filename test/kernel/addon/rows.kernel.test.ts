import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { compileTestKernelAddon } from '../../../scripts/build/compile-kernel.ts'
import { readCompilerMajorVersion } from '../../../scripts/build/compilers.ts'
import { PATIENCE, sized } from '../../helpers/size.ts'

const PROGRAM = join(import.meta.dirname, 'rows.ts')
const FAKE_KERNEL = join(import.meta.dirname, 'fake-kernel.c')

const ROWS = sized(1_000_000, 20_000_000, 200_000_000)

const noCompiler =
  (await readCompilerMajorVersion(process.arch)) === undefined
    ? ' (skipped: needs a C compiler: apt-get install gcc)'
    : ''

async function check(): Promise<void> {
  const seed = Number(process.env.MODEKEEP_TEST_SEED ?? Date.now() % 2 ** 32)
  const directory = mkdtempSync(`${tmpdir()}/modekeep-rows-`)
  try {
    await compileTestKernelAddon('fake_kernel', [FAKE_KERNEL], `${directory}/fake-kernel.node`)
    const args = [PROGRAM, `${directory}/fake-kernel.node`, String(ROWS), String(seed)]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    const { passed, refused, never } = JSON.parse(stdout)
    expect(never, `MODEKEEP_TEST_SEED=${seed}`).toEqual([])
    expect(passed + refused).toBe(ROWS)
    expect(Math.min(passed, refused)).toBeGreaterThan(ROWS / 5)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

describe.skipIf(noCompiler !== '')(`the table of system calls${noCompiler}`, () => {
  it('permits no forbidden system call among many random ones', check, PATIENCE)
})
