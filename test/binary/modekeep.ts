import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'vitest'
import { isRoot } from '../helpers/stage.ts'

export const MODEKEEP = resolve(import.meta.dirname, '../../dist/modekeep')

/** What a title says where tests that have it mount cannot run here; '' where they can. */
export const cannotMount = !isRoot
  ? ' (skipped: mounts need root; run "sudo npm test")'
  : fs.existsSync(MODEKEEP)
    ? ''
    : ' (skipped: run "npm run build")'

/** stdout and stderr on one pipe, as kubelet's CombinedOutput has them. */
const LIKE_KUBELET = 'exec "$0" "$@" 2>&1'

export interface Circumstances {
  env?: Record<string, string>
  stdin?: string
  /** A shell script that starts "$0" with "$@", for other streams than kubelet's. */
  script?: string
}

/** Runs the executable; `text` is all it wrote. */
export function run(args: readonly string[], around: Circumstances = {}): { text: string; code: number | null } {
  const { env = {}, stdin = '', script = LIKE_KUBELET } = around
  const { stdout, status, error } = spawnSync('sh', ['-c', script, MODEKEEP, ...args], {
    env: { PATH: process.env.PATH, ...env },
    input: stdin,
    encoding: 'utf8',
    timeout: 600_000,
  })
  if (error) throw error
  return { text: stdout, code: status }
}

/** What kubelet would understand: one JSON document, a newline, exit status 0. */
export function reply(args: readonly string[], around: Circumstances = {}): Record<string, unknown> {
  return understood(run(args, around))
}

export function understood({ text, code }: { text: string; code: number | null }): Record<string, unknown> {
  expect(text).toMatch(/^\{[^\n]*\}\n$/)
  expect(code).toBe(0)
  return JSON.parse(text)
}
