import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import type { HelperInvocation, HelperRunner } from '../../src/kernel/helpers.ts'
import { createLinuxHelperRunner } from '../../src/kernel/linux/helpers.ts'
import { SYSTEM_PROGRAM_DIRECTORIES } from '../../src/kernel/linux/programs.ts'

/** A directory of programs written by a test, found before those of the system. */
export class FakePrograms {
  readonly top = fs.mkdtempSync(`${tmpdir()}/modekeep-programs-`)
  readonly helpers: HelperRunner

  constructor(path: readonly string[] = SYSTEM_PROGRAM_DIRECTORIES) {
    this.helpers = createLinuxHelperRunner([this.top, ...path])
    onTestFinished(() => fs.rmSync(this.top, { recursive: true, force: true }))
  }

  /** @param body a shell script; $TOP is the directory, for what it leaves behind */
  add(name: string, body: string, mode = 0o755): string {
    fs.writeFileSync(`${this.top}/${name}`, `#!/bin/sh\nTOP=${this.top}\n${body}\n`)
    fs.chmodSync(`${this.top}/${name}`, mode)
    return name
  }

  /** What a program wrote below $TOP. */
  read(name: string): string {
    return fs.readFileSync(`${this.top}/${name}`, 'latin1')
  }

  run(program: string, over: Partial<HelperInvocation> = {}): Promise<void> {
    return this.helpers.run({ program, args: [], timeoutSeconds: 30, secrets: [], ...over })
  }
}

/** A program that writes down its arguments, environment and secret file, and succeeds. */
export const RECORDING = `
for argument in "$@"; do printf '%s\\0' "$argument"; done > $TOP/argv
cat /proc/self/environ > $TOP/environment
cat /proc/self/fd/3 > $TOP/secret-file 2>/dev/null
exit 0`

/** Processes whose command line or environment has a text, this one left out. */
export function findProcessesWith(text: string | Buffer): string[] {
  const pids = fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name) && Number(name) !== process.pid)
  return pids.filter((pid) =>
    ['cmdline', 'environ'].some((file) => {
      try {
        return fs.readFileSync(`/proc/${pid}/${file}`).includes(text)
      } catch {
        return false
      }
    }),
  )
}

export async function readFailureMessage(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => {
      throw new Error('it should have failed')
    },
    (error: Error) => error.message,
  )
}

/** A directory with a program, in the mount namespace of the run: where the node's own program is, and where it would be looked for last. */
export function bindFakeProgram(program: string, directory: string): void {
  const places: [string, string][] = [[directory, '/usr/local/sbin']]
  for (const path of [`/usr/sbin/${program}`, `/usr/bin/${program}`]) {
    if (fs.existsSync(path)) places.push([`${directory}/${program}`, path])
  }
  for (const [from, to] of places) {
    execFileSync('mount', ['--bind', from, to])
    onTestFinished(() => {
      execFileSync('umount', ['--lazy', to])
    })
  }
}
