import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Architecture } from '../../scripts/build/runtime.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** What a checkout has that a release is made from. */
const SOURCES = [
  'src',
  'driver',
  'scripts',
  'docs',
  'package.json',
  'package-lock.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'SECURITY.md',
  'install.sh',
]

export const EPOCH = 1_700_000_000

/** Programs and the cache. */
const { PATH, HOME, XDG_CACHE_HOME } = process.env
const OURS = { PATH, HOME, XDG_CACHE_HOME }

/** A release made in a copy of the sources. */
export interface Made {
  output: string
  /** On stdout. */
  said: string
  remove(): void
}

/**
 * Copies the sources, all with the time of now, and makes a release there.
 * @param place how the copy's directory is called
 */
export function makeRelease(
  place: string,
  umask: string,
  env: Record<string, string>,
  arch: readonly Architecture[],
): Made {
  const top = fs.mkdtempSync(join(tmpdir(), 'modekeep-release-'))
  const checkout = join(top, place)
  fs.mkdirSync(checkout, { recursive: true })
  for (const name of SOURCES) fs.cpSync(join(ROOT, name), join(checkout, name), { recursive: true })
  fs.symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))
  const output = join(top, 'output')
  const args = [...arch.flatMap((name) => ['--arch', name]), '--output', output]
  const node = [process.execPath, join(checkout, 'scripts/release.ts'), ...args]
  const { status, stdout, stderr } = spawnSync('sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...node], {
    cwd: checkout,
    env: { ...OURS, SOURCE_DATE_EPOCH: String(EPOCH), ...env },
    encoding: 'utf8',
    timeout: 600_000,
  })
  if (status !== 0) throw new Error(`release in ${checkout} ended with ${status}:\n${stdout}${stderr}`)
  return { output, said: stdout, remove: () => fs.rmSync(top, { recursive: true, force: true }) }
}

/** Unpacks with the machine's own tar, as an administrator does. */
export function unpack(archive: string, into: string): void {
  fs.mkdirSync(into, { recursive: true })
  execFileSync('tar', ['-xzf', archive, '-C', into])
}
