import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { Entry } from '../archive/tar.ts'
import { PT, readSegments } from '../build/elf.ts'

const DIRECTORIES = ['bin', 'dev', 'etc', 'proc', 'sys']

/**
 * A root directory with a static busybox and its links, and nothing else that could be run.
 * @param wanted its applets that the image needs; without, all that it has
 * @throws {Error} if the busybox is not static, or has no such applet
 */
export function shellRoot(busybox: string, wanted?: readonly string[]): Entry[] {
  const bytes = fs.readFileSync(busybox)
  if (readSegments(bytes).some(({ type }) => type === PT.INTERP))
    throw new Error(`${busybox} is not static: the image has no libraries for it`)
  const applets = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  const missing = wanted?.filter((name) => !applets.includes(name)) ?? []
  if (missing.length > 0) throw new Error(`${busybox} has no ${missing.join(', ')}`)
  const links = [...(wanted ?? applets)].filter((name) => name !== 'busybox').sort()
  return [
    ...DIRECTORIES.map((path) => ({ path, directory: true as const, mode: 0o755 })),
    { path: 'tmp', directory: true, mode: 0o1777 },
    { path: 'bin/busybox', bytes, mode: 0o755 },
    ...links.map((name) => ({ path: `bin/${name}`, link: 'busybox' })),
    { path: 'etc/passwd', bytes: Buffer.from('root:x:0:0:root:/:/bin/sh\n'), mode: 0o644 },
    { path: 'etc/group', bytes: Buffer.from('root:x:0:\n'), mode: 0o644 },
  ]
}
