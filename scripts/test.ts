import { spawnSync } from 'node:child_process'
import { dirname, resolve } from 'node:path'

// Every mount of a test is made in a mount namespace of the run, so nothing is left on the machine, however it ends.
const root = resolve(import.meta.dirname, '..')
const node = process.execPath
const bin = `${root}/node_modules/.bin`
const args = process.argv.slice(2)
const isRoot = process.getuid?.() === 0

for (const [what, ...command] of [
  ['format and lint', `${bin}/biome`, 'check', '.'],
  ['types', `${bin}/tsc`, '--noEmit'],
] as const) {
  if (args.length > 0) break
  console.log(`Checking ${what} …`)
  run(command[0], command.slice(1))
}
if (!isRoot) console.log('Not root: what needs real mounts is skipped. "sudo npm test" runs everything.')
const vitest = [node, `${root}/node_modules/vitest/vitest.mjs`, 'run', ...args]
if (isRoot) run('unshare', ['--mount', '--propagation', 'private', ...vitest])
else run(vitest[0] ?? node, vitest.slice(1))

function run(command: string, rest: readonly string[]): void {
  const result = spawnSync(command, rest, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${dirname(node)}:${bin}:${process.env.PATH}` },
  })
  if (result.error) throw result.error
  if (result.status !== 0) process.exit(result.status ?? 1)
}
