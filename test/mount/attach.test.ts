import { describe, expect, it } from 'vitest'
import type { Handle, Host } from '../../src/kernel/host.ts'
import { type MountPoint, openMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { SystemError } from '../../src/kernel/system-error.ts'
import { attachTreeAtPoint, detachAllMounts, replaceMounts } from '../../src/mount/attach.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const PLACE = '/pods/v'

/** A place with the sources mounted on it, the first lowest. */
function arrange(...mounted: string[]) {
  const world = new MemoryWorld()
  for (const path of [PLACE, '/srv/a', '/srv/b', '/srv/c']) world.fs.mkdirSync(path, { recursive: true })
  const host = memoryHost(world)
  const point = openMountPoint(host, PLACE) as MountPoint
  for (const source of mounted) attachTreeAtPoint(host, point, clone(host, source))
  world.actions.length = 0
  return { world, host, point }
}

function clone(host: Host, source: string): Handle {
  return host.mounts.cloneTree(host.inodes.openTrusted(source))
}

const shown = (host: Host) => readMountLayers(host, PLACE).map(({ root }) => root)

/** As a kernel before Linux 6.5. */
function withoutBeneath(host: Host): Host {
  return { ...host, mounts: { ...host.mounts, attachBeneath: () => false } }
}

describe('a replacement', () => {
  it('attaches the new mount beneath, then detaches the old one', () => {
    const { world, host, point } = arrange('/srv/a')
    replaceMounts(host, point, clone(host, '/srv/b'), '/srv/b')
    expect(shown(host)).toEqual(['/srv/b'])
    expect(world.actions.filter((action) => action !== 'clone-tree')).toEqual(['attach-beneath', 'detach'])
  })

  it('detaches the stacked mounts below that show the same directory or the new one', () => {
    const { host, point } = arrange('/srv/a', '/srv/a', '/srv/a')
    replaceMounts(host, point, clone(host, '/srv/b'), '/srv/b')
    expect(shown(host)).toEqual(['/srv/b'])
    const next = arrange('/srv/b', '/srv/a')
    replaceMounts(next.host, next.point, clone(next.host, '/srv/b'), '/srv/b')
    expect(shown(next.host)).toEqual(['/srv/b'])
  })

  it('replaces a mount whose root cannot be opened, because its handle is stale', () => {
    const { host, point } = arrange('/srv/a')
    const { openEntry } = host.inodes
    const stale: Host['inodes']['openEntry'] = (parent, name) => {
      if (shown(host).includes('/srv/a')) throw new SystemError('openat', 'ESTALE', 'v')
      return openEntry(parent, name)
    }
    replaceMounts({ ...host, inodes: { ...host.inodes, openEntry: stale } }, point, clone(host, '/srv/b'), '/srv/b')
    expect(shown(host)).toEqual(['/srv/b'])
  })

  it('reads the mount table twice for any number of layers', () => {
    const { host, point } = arrange(...Array.from({ length: 100 }, () => '/srv/a'))
    let reads = 0
    const table = () => {
      reads++
      return host.mounts.table()
    }
    replaceMounts({ ...host, mounts: { ...host.mounts, table } }, point, clone(host, '/srv/b'), '/srv/b')
    expect(shown(host)).toEqual(['/srv/b'])
    expect(reads).toBe(2)
  })

  it('keeps a layer of another directory hidden, which users never saw', () => {
    const { host, point } = arrange('/srv/c', '/srv/a')
    replaceMounts(host, point, clone(host, '/srv/b'), '/srv/b')
    expect(shown(host)).toEqual(['/srv/c', '/srv/b'])
  })

  it('on a kernel before 6.5 leaves the mount point without a mount for a moment, and has the same result', () => {
    const { world, host, point } = arrange('/srv/a')
    replaceMounts(withoutBeneath(host), point, clone(host, '/srv/b'), '/srv/b')
    expect(shown(host)).toEqual(['/srv/b'])
    expect(world.actions.indexOf('detach')).toBeLessThan(world.actions.indexOf('attach'))
  })

  it('that fails after the old mount was detached attaches the old mount again', () => {
    const { host, point } = arrange('/srv/a')
    const tree = clone(host, '/srv/b')
    const older = withoutBeneath(host)
    const failing = {
      ...older,
      mounts: {
        ...older.mounts,
        attach(mount: Handle, target: Handle) {
          if (mount === tree) throw new Error('no room')
          host.mounts.attach(mount, target)
        },
      },
    }
    expect(() => replaceMounts(failing, point, tree, '/srv/b')).toThrow('no room')
    expect(shown(host)).toEqual(['/srv/a'])
  })

  it('does not begin on a node without free descriptors', () => {
    const { host, point } = arrange('/srv/a')
    const older = withoutBeneath(host)
    const spent = Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
    const failing = {
      ...older,
      mounts: {
        ...older.mounts,
        cloneTree: () => {
          throw spent
        },
      },
    }
    expect(() => replaceMounts(failing, point, clone(host, '/srv/b'), '/srv/b')).toThrow(spent)
    expect(shown(host)).toEqual(['/srv/a'])
  })
})

describe('detachAllMounts', () => {
  it('removes every layer, and succeeds again without layers', () => {
    const { host, point } = arrange('/srv/a', '/srv/b')
    detachAllMounts(host, point)
    expect(shown(host)).toEqual([])
    expect(() => detachAllMounts(host, point)).not.toThrow()
  })
})
