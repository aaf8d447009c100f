import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { linuxHost } from '../../src/kernel/linux/index.ts'

const { inodes, mounts } = linuxHost

it.each(['/', '/proc'])(
  'the type of the file system at %s is read from the kernel without a request to a server',
  (path) => {
    const rows = mounts.table().trim().split('\n')
    const mountPoint = path === '/' ? '/' : '/proc'
    const row = rows.findLast((line) => line.split(' ')[4] === mountPoint)
    const type = / - (\S+) /.exec(row ?? '')?.[1]
    expect(type).toBeDefined()
    // Before Linux 6.8 the type is undefined.
    expect([type, undefined]).toContain(inodes.knownType(path))
    const [major = 0, minor = 0] = readFileSync('/proc/sys/kernel/osrelease', 'utf8').split('.').map(Number)
    if (major > 6 || (major === 6 && minor >= 8)) expect(inodes.knownType(path)).toBe(type)
  },
)

it.each(['/no such directory', '/proc/self', '/proc/self/root'])(
  'the type is unknown for %s: it does not exist, or is a link',
  (path) => {
    expect(inodes.knownType(path)).toBeUndefined()
  },
)
