import { type SpawnSyncOptions, spawnSync } from 'node:child_process'

/**
 * Runs a command to its end and returns its stdout.
 * @throws {Error} with its last words, if it is missing or fails; its cause is all that it wrote to stderr
 */
export function runCommand(command: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 << 20,
    ...options,
    encoding: 'utf8',
  })
  if (error) throw 'code' in error && error.code === 'ENOENT' ? new Error(`${command} is missing`) : error
  if (status === 0) return stdout
  const lastWords = (stderr || stdout || '').trim().split('\n').at(-1)
  throw new Error(`${command}: ${lastWords || `ended with ${signal ?? status}`}`, { cause: stderr })
}
