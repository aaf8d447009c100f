import { describe, expect, it } from 'vitest'
import { type MountPoint, openMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { createEmptyMountPoint } from '../../src/mount/attach.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const PLACE = '/pods/v'

function arrange(kind: 'directory' | 'file' | 'missing' | 'full directory' | 'full file' | 'link') {
  const world = new MemoryWorld()
  const { fs } = world
  fs.mkdirSync('/pods')
  if (kind.endsWith('directory')) fs.mkdirSync(PLACE)
  if (kind === 'full directory') fs.writeFileSync(`${PLACE}/kept`, '')
  if (kind === 'file') fs.writeFileSync(PLACE, '')
  if (kind === 'full file') fs.writeFileSync(PLACE, 'kept')
  if (kind === 'link') fs.symlinkSync('/etc', PLACE)
  const host = memoryHost(world)
  return { world, host, fs, point: openMountPoint(host, PLACE) as MountPoint }
}

describe('the mount point of a volume', () => {
  it.each([
    ['directory', 'file'],
    ['missing', 'file'],
    ['file', 'directory'],
    ['missing', 'directory'],
  ] as const)('is changed from a %s to an empty %s', (kind, wanted) => {
    const { host, fs, point } = arrange(kind)
    createEmptyMountPoint(host, point, wanted)
    const stat = fs.lstatSync(PLACE)
    expect(wanted === 'file' ? stat.isFile() && stat.size === 0 : stat.isDirectory()).toBe(true)
  })

  it.each(['directory', 'file'] as const)('is unchanged if a %s is there already', (kind) => {
    const { world, host, point } = arrange(kind)
    world.actions.length = 0
    createEmptyMountPoint(host, point, kind)
    expect(world.actions).toEqual([])
  })

  it.each([
    ['full directory', 'file', /is not empty, so no file can take its place: empty it$/],
    ['full file', 'directory', /is a link or a file: remove it/],
    ['full file', 'file', /is a link or a file: remove it/],
    ['link', 'directory', /is a link or a file: remove it/],
  ] as const)('is refused and kept if it is a %s', (kind, wanted, message) => {
    const { host, fs, point } = arrange(kind)
    expect(() => createEmptyMountPoint(host, point, wanted)).toThrow(message)
    if (kind === 'full directory') expect(fs.readdirSync(PLACE)).toEqual(['kept'])
    if (kind === 'full file') expect(fs.readFileSync(PLACE, 'utf8')).toBe('kept')
    if (kind === 'link') expect(fs.readlinkSync(PLACE)).toBe('/etc')
  })

  it('is a directory again if no file could be created in its place', () => {
    const { host, fs, point } = arrange('directory')
    const failing = {
      ...host,
      inodes: {
        ...host.inodes,
        createFile: () => {
          throw new Error('no room')
        },
      },
    }
    expect(() => createEmptyMountPoint(failing, point, 'file')).toThrow('no room')
    expect(fs.lstatSync(PLACE).isDirectory()).toBe(true)
  })
})
