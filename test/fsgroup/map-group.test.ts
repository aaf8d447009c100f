import { beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { applyIdMap, UnmappableVolume } from '../../src/fsgroup/map-group.ts'
import { type Handle, type Host, SystemError } from '../../src/kernel/host.ts'
import { createGroupSwapMap } from '../../src/kernel/id-map.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

let world: MemoryWorld
let host: Host
let source: Handle
let tree: Handle
beforeEach(() => {
  world = new MemoryWorld()
  host = memoryHost(world)
  world.fs.mkdirSync('/data/7', { recursive: true })
  world.fs.chownSync('/data', 0, 1500)
  world.fs.chownSync('/data/7', 0, 7)
  source = host.inodes.openLinkFree('/data')
  tree = host.mounts.cloneTree(source)
})

function map(from: number, to: number, mounts: Partial<Host['mounts']> = {}): void {
  const over = { ...host, mounts: { ...host.mounts, ...mounts } }
  const session = { host: over, config: DEFAULT_CONFIG, note: () => {}, warn: () => {} }
  applyIdMap(session, tree, source, createGroupSwapMap(from, to))
}

describe('a mapped tree', () => {
  it('shows the group on disk as the requested group, and the source is unchanged', () => {
    map(1500, 2000)
    expect(host.inodes.stat(tree)).toMatchObject({ uid: 0, gid: 2000 })
    expect(host.inodes.statEntry(tree, Buffer.from('7')).gid).toBe(7)
    expect(host.inodes.stat(source).gid).toBe(1500)
    expect(world.actions).toEqual(['clone-tree', 'map-ids 1500:2000 2000:1500'])
  })

  it('may map another group than the group of the root', () => {
    map(7, 2000)
    expect(host.inodes.stat(tree).gid).toBe(1500)
    expect(host.inodes.statEntry(tree, Buffer.from('7')).gid).toBe(2000)
  })

  it('stores new files with the group on disk', () => {
    map(1500, 2000)
    host.inodes.chown(host.inodes.openEntry(tree, Buffer.from('7')), 2000)
    expect(world.fs.statSync('/data/7').gid).toBe(1500)
  })
})

describe('an attempt to map a tree', () => {
  const fails = (syscall: string, code: string) => ({
    mapIds: () => {
      throw new SystemError(syscall, code, 'x')
    },
  })

  it.each([
    ['mount_setattr', 'ENOSYS', /kernel has no idmapped mounts, Linux 5\.12/],
    ['mount_setattr', 'EPERM', /modekeep itself runs in a user namespace/],
    ['clone', 'ENOSPC', /allows no further user namespaces.*clone x: ENOSPC/],
    ['clone', 'EUSERS', /allows no further user namespaces/],
    ['clone', 'EINVAL', /kernel has no user namespaces/],
    ['clone', 'EPERM', /may make no user namespace on this node/],
    ['clone', 'EACCES', /may make no user namespace on this node \(clone x: EACCES\)/],
    ['open', 'EACCES', /may make no user namespace on this node/],
    ['gid_map', 'EINVAL', /kernel rejects these ranges of ids.*gid_map x: EINVAL/],
    ['gid_map', 'EPERM', /modekeep itself runs in a user namespace/],
  ])('fails with the reason and the remedy if %s returns %s', (syscall, code, why) => {
    const attempt = () => map(1500, 2000, fails(syscall, code))
    expect(attempt).toThrow(UnmappableVolume)
    expect(attempt).toThrow(Refusal)
    expect(attempt).toThrow(why)
    expect(attempt).toThrow(/^ownership "idmap" is not possible.*; write ownership "auto"/)
  })

  it('fails with the first suitable kernel version if newer kernels map the file system', () => {
    const row = (fsType: string) => ({ tableId: () => 3, table: () => `3 1 0:1 / /data rw - ${fsType} none rw\n` })
    const attempt = (fsType: string) => () => map(1500, 2000, { ...fails('mount_setattr', 'EINVAL'), ...row(fsType) })
    expect(attempt('tmpfs')).toThrow(/cannot mount tmpfs idmapped, Linux 6\.3 and newer can;/)
    expect(attempt('fuse.x')).toThrow(/cannot mount fuse\.x idmapped: its daemon must ask for it, on Linux 6\.12/)
    expect(attempt('nfs4')).toThrow(/cannot mount nfs4 idmapped;/)
  })

  it('fails without an effect if the file system cannot be mapped', () => {
    world.rootMount.fileSystem.mappable = false
    expect(() => map(1500, 2000)).toThrow(UnmappableVolume)
    expect(world.actions).toEqual(['clone-tree'])
  })

  it.each([
    ['another user', { uid: 100_000 }],
    ['another group', { gid: 3 }],
  ])('fails if the mapped root shows %s', (_what, shown) => {
    let isMapped = false
    const { stat } = host.inodes
    host.inodes.stat = (handle) => (isMapped ? { ...stat(handle), ...shown } : stat(handle))
    const mapIds = () => {
      isMapped = true
    }
    expect(() => map(1500, 2000, { mapIds })).toThrow(/belongs to another user namespace/)
  })

  it('fails with the original error if it has another cause', () => {
    expect(() => map(1500, 2000, fails('mount_setattr', 'ENOMEM'))).toThrow(/^mount_setattr x: ENOMEM$/)
  })
})
