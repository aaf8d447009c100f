import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { outputsOf, type Step, scriptFor } from './console.ts'
import { ROOT } from './pages.ts'

const APART = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private']

/**
 * Runs steps on a node of their own. Needs root, and dist/modekeep.
 * @returns what each printed
 * @throws {Error} where the node could not be made
 */
export function play(steps: readonly Step[]): string[] {
  const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-page-`)
  onTestFinished(() => fs.rmSync(directory, { recursive: true }))
  fs.mkdirSync(`${directory}/node`)
  fs.writeFileSync(`${directory}/script.sh`, scriptFor(steps))
  const node = ['sh', join(import.meta.dirname, 'node.sh'), ROOT, `${directory}/node`, `${directory}/script.sh`]
  const { stdout, stderr, error } = spawnSync('unshare', [...APART, ...node], { encoding: 'utf8', timeout: 600_000 })
  if (error || stderr !== '') throw error ?? new Error(stderr)
  return outputsOf(stdout)
}
