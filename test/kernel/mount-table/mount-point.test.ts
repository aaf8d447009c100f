import { describe, expect, it } from 'vitest'
import { type Host, SystemError } from '../../../src/kernel/host.ts'
import {
  type MountPoint,
  openMountPoint,
  resolveMountPointState,
  statMountPointUnsynced,
} from '../../../src/kernel/mount-table/mount-point.ts'
import { memoryHost } from '../../memory-host/index.ts'
import { MemoryWorld } from '../../memory-host/world.ts'

function arrange() {
  const world = new MemoryWorld()
  world.fs.mkdirSync('/real/pods/v', { recursive: true })
  world.fs.mkdirSync('/srv/a', { recursive: true })
  return { world, host: memoryHost(world) }
}

function seen(host: Host, directory: string) {
  const point = openMountPoint(host, directory) as MountPoint
  return resolveMountPointState(host, point, statMountPointUnsynced(host, point))
}

function failingWith(host: Host, code: string): Host {
  const statMountPoint = () => {
    throw new SystemError('statx', code, 'v')
  }
  return { ...host, inodes: { ...host.inodes, statMountPoint } }
}

describe('a mount point', () => {
  it('has the real path of its parent for every spelling', () => {
    const { world, host } = arrange()
    world.fs.symlinkSync('/real', '/link')
    expect(openMountPoint(host, '/real/pods/v')?.path).toBe('/real/pods/v')
    expect(openMountPoint(host, '/v')?.path).toBe('/v')
  })

  it('is undefined if its parent is missing or no directory', () => {
    const { world, host } = arrange()
    world.fs.writeFileSync('/file', '')
    expect(openMountPoint(host, '/nowhere/v')).toBeUndefined()
    expect(openMountPoint(host, '/file/v')).toBeUndefined()
  })

  it('is a directory, an empty file or missing if nothing is mounted', () => {
    const { world, host } = arrange()
    expect(seen(host, '/real/pods/v')).toEqual({ mounted: undefined, target: 'directory' })
    world.fs.writeFileSync('/real/pods/file', '')
    expect(seen(host, '/real/pods/file')).toEqual({ mounted: undefined, target: 'file' })
    expect(seen(host, '/real/pods/none')).toEqual({ mounted: undefined, target: 'missing' })
  })

  it('is refused if it is a file with content', () => {
    const { world, host } = arrange()
    world.fs.writeFileSync('/real/pods/full', 'x')
    expect(() => seen(host, '/real/pods/full')).toThrow(/is a link or a file: remove it/)
  })

  it('shows the topmost mount by the identity of its root', () => {
    const { host } = arrange()
    const source = host.inodes.openTrusted('/srv/a')
    const { device, inode } = host.inodes.stat(source)
    const tree = host.mounts.cloneTree(source)
    const { mountId } = host.inodes.stat(tree)
    host.mounts.attach(tree, host.inodes.openTrusted('/real/pods/v'))
    expect(seen(host, '/real/pods/v')).toEqual({
      mounted: { mountId: BigInt(mountId), device, inode, isDirectory: true },
      target: 'directory',
    })
  })

  it.each(['ENOTCONN', 'ESTALE', 'EIO', 'EACCES', 'EHOSTDOWN'])(
    'is broken if its server or daemon returns %s',
    (code) => {
      const { host } = arrange()
      expect(seen(failingWith(host, code), '/real/pods/v')).toEqual({ mounted: 'broken', target: 'directory' })
    },
  )

  it('is not returned after any other error', () => {
    const { host } = arrange()
    expect(() => seen(failingWith(host, 'ENOMEM'), '/real/pods/v')).toThrow(SystemError)
  })
})
