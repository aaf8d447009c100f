import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { createTerminalPicture } from './terminal.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** Where the picture at the top of the README is. */
export const SESSION_PICTURE_FILE = resolve(ROOT, 'docs/session.svg')

/**
 * Plays the session of the README's picture with dist/modekeep, on real mounts in a terminal of 80 columns.
 * @returns the picture, an SVG document
 * @throws {Error} with what the session printed, where a command of it fails; it needs root
 */
export function createSessionPicture(): string {
  const session = `sh ${resolve(import.meta.dirname, 'session.sh')} ${resolve(ROOT, 'dist')}`
  const wrap = [
    '--mount',
    '--propagation',
    'private',
    'script',
    '--quiet',
    '--return',
    '--command',
    session,
    '/dev/null',
  ]
  const { status, error, stdout } = spawnSync('unshare', wrap, {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, TERM: 'xterm', LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (error) throw error
  if (status !== 0) throw new Error(`the session of the README's picture failed:\n${stdout}`)
  return createTerminalPicture(
    'modekeep on a terminal: what it would change and what kubelet would, then apply, then restore',
    stdout,
    80,
  )
}
