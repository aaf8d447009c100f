import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { benchAnyVolume } from './any-volume/main.ts'
import { HELP, readOptions } from './options.ts'

// Not /tmp, which may be in memory: the journal's fsync has to cost what it costs on a node.
const PLACE = '/var/tmp/modekeep-bench-'
// In a process namespace of its own, everything ends with its first process; in a mount namespace, so do the mounts.
const UNSHARE = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc']

try {
  const args = process.argv.slice(2)
  const { help, anyVolume } = readOptions(args)
  if (help) process.stdout.write(HELP)
  else if (anyVolume) benchAnyVolume()
  else if (process.getuid?.() === 0) start(args)
  else throw new Error('the benchmark mounts file systems and needs root: sudo npm run bench')
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

function start(args: readonly string[]): void {
  const workDirectory = fs.mkdtempSync(PLACE)
  const run = [process.execPath, resolve(import.meta.dirname, 'run.ts')]
  const child = spawn('unshare', [...UNSHARE, ...run, workDirectory, ...args], { stdio: 'inherit' })
  let interrupted: NodeJS.Signals | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      interrupted = signal
      child.kill('SIGKILL')
    })
  }
  const clear = () => fs.rmSync(workDirectory, { recursive: true, force: true, maxRetries: 10 })
  child.on('error', (error) => {
    clear()
    console.error(`bench: ${error.message}`)
    process.exitCode = 1
  })
  child.on('exit', (code) => {
    clear()
    process.exitCode = interrupted ? 128 + constants.signals[interrupted] : (code ?? 1)
  })
}
