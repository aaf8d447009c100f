import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'

/** Compiles a C source below test/ for the test that is running. Returns the program's path. */
export function compile(source: string): string {
  const directory = mkdtempSync(`${tmpdir()}/modekeep-c-`)
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const program = `${directory}/${basename(source, '.c')}`
  execFileSync(requireProgram('cc'), [
    '-O2',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-o',
    program,
    resolve(import.meta.dirname, '..', source),
  ])
  return program
}
