import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

// Where the demonstration can be played, the most real place first. Each has mounts of its own, gone with the process.
const DEMO_PLACES = [
  { name: 'root', needs: () => process.getuid?.() === 0, wrap: ['unshare', '--mount', '--propagation', 'private'] },
  {
    name: 'user-namespace',
    needs: () =>
      process.getuid?.() !== 0 &&
      isCommandSuccessful('unshare', ['--user', '--map-root-user', '--map-auto', '--mount', 'true']),
    wrap: ['unshare', '--user', '--map-root-user', '--map-auto', '--mount', '--propagation', 'private'],
  },
  { name: 'memory', needs: () => true, wrap: [] },
] as const

const playScript = resolve(import.meta.dirname, 'demo/play.ts')
const demoPlace = DEMO_PLACES.find(({ needs }) => needs())
if (demoPlace) {
  const [command, ...args] = [...demoPlace.wrap, process.execPath, playScript, demoPlace.name]
  const { status, error } = spawnSync(command ?? process.execPath, args, { stdio: 'inherit' })
  if (error) throw error
  process.exitCode = status ?? 1
}

function isCommandSuccessful(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}
