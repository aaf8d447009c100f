import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { Entry } from '../archive/tar.ts'
import { PT, readSegments } from '../build/elf.ts'

const DIRECTORIES = ['bin', 'dev', 'etc', 'proc', 'sys']

/**
 * A root directory with a static busybox and its links, and nothing else that could be run.
 * @param without applets that the image brings itself
 * @throws {Error} if the busybox is not static
 */
export function shellRoot(busybox: string, without: readonly string[] = []): Entry[] {
  const bytes = fs.readFileSync(busybox)
  if (readSegments(bytes).some(({ type }) => type === PT.INTERP))
    throw new Error(`${busybox} is not static: the image has no libraries for it`)
  const applets = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  const links = applets.filter((name) => name !== 'busybox' && !without.includes(name)).sort()
  return [
    ...DIRECTORIES.map((path) => ({ path, directory: true as const, mode: 0o755 })),
    { path: 'tmp', directory: true, mode: 0o1777 },
    { path: 'bin/busybox', bytes, mode: 0o755 },
    ...links.map((name) => ({ path: `bin/${name}`, link: 'busybox' })),
    { path: 'etc/passwd', bytes: Buffer.from('root:x:0:0:root:/:/bin/sh\n'), mode: 0o644 },
    { path: 'etc/group', bytes: Buffer.from('root:x:0:\n'), mode: 0o644 },
  ]
}
