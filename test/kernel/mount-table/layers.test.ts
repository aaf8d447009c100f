import { describe, expect, it } from 'vitest'
import { DIRECTORY_TYPE, type Host, REGULAR_FILE_TYPE, type Stat } from '../../../src/kernel/host.ts'
import { hasGuardMount, isGuardMount, readMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'

const GUARD = '30 20 0:50 / /pod ro - tmpfs modekeep ro,size=4k,nr_inodes=1,mode=0'
const VOLUME = '31 30 0:51 / /pod rw - fuse.bindfs bindfs rw,user_id=0'

/** A host of which only the table is asked. */
function hostWith(...rows: string[]): Host & { reads: number } {
  const table = () => {
    host.reads++
    return `${['20 1 0:1 / / rw - ext4 /dev/vda rw', ...rows].join('\n')}\n`
  }
  const host = { reads: 0, mounts: { table } }
  return host as unknown as Host & { reads: number }
}

const root = (mode: number, mountRoot = true) => ({ mode, mountRoot }) as Stat

describe('a guard mount', () => {
  it('is recognized as the topmost mount, and below another one', () => {
    expect(readMountLayers(hostWith(GUARD, VOLUME), '/pod').map(({ id }) => id)).toEqual([30, 31])
    expect(isGuardMount(hostWith(GUARD), '/pod', root(DIRECTORY_TYPE))).toBe(true)
    expect(isGuardMount(hostWith(GUARD, VOLUME), '/pod', root(DIRECTORY_TYPE))).toBe(false)
    expect(hasGuardMount(hostWith(GUARD, VOLUME), '/pod')).toBe(true)
    expect(hasGuardMount(hostWith(GUARD), '/other')).toBe(false)
  })

  it.each([
    ['a writable tmpfs', GUARD.replace(' ro,size', ' rw,size')],
    ["another program's tmpfs", GUARD.replace('modekeep', 'tmpfs')],
    ['a tmpfs that permits inodes', GUARD.replace('nr_inodes=1,', 'nr_inodes=10,')],
    ['an NFS mount with its name', GUARD.replace('- tmpfs', '- nfs')],
  ])('is not recognized in %s', (_what, row) => {
    expect(isGuardMount(hostWith(row), '/pod', root(DIRECTORY_TYPE))).toBe(false)
    expect(hasGuardMount(hostWith(row), '/pod')).toBe(false)
  })

  it.each([
    ['has permissions', root(DIRECTORY_TYPE | 0o755)],
    ['is a file', root(REGULAR_FILE_TYPE)],
    ['is no mount root', root(DIRECTORY_TYPE, false)],
  ])('is not searched in the mount table if the mount point %s', (_what, stat) => {
    const host = hostWith(GUARD)
    expect(isGuardMount(host, '/pod', stat)).toBe(false)
    expect(host.reads).toBe(0)
  })
})
