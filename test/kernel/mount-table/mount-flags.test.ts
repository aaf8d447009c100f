import { describe, expect, it } from 'vitest'
import {
  findContradictingMountOptions,
  MOUNT_OPTIONS_BY_NAME,
  ORDINARY_MOUNT_OPTIONS,
  parseMountFlags,
  parseMountRowFlags,
} from '../../../src/kernel/mount-table/mount-flags.ts'

// include/uapi/linux/mount.h, MOUNT_ATTR_*
const RDONLY = 0x1
const NOSUID = 0x2
const NODEV = 0x4
const NOEXEC = 0x8
const ATIME = 0x70
const NOATIME = 0x10
const STRICTATIME = 0x20
const NODIRATIME = 0x80
const NOSYMFOLLOW = 0x200000
const ALWAYS_SET_FLAGS = NOSUID | NODEV

describe('the flags of a mount', () => {
  it.each([
    [[], ALWAYS_SET_FLAGS, 0],
    [['ro'], ALWAYS_SET_FLAGS | RDONLY, 0],
    [['rw'], ALWAYS_SET_FLAGS, 0],
    [['nosuid'], ALWAYS_SET_FLAGS, 0],
    [['nodev'], ALWAYS_SET_FLAGS, 0],
    [['suid'], NODEV, 0],
    [['dev'], NOSUID, 0],
    [['suid', 'dev'], 0, 0],
    [['noexec'], ALWAYS_SET_FLAGS | NOEXEC, 0],
    [['exec'], ALWAYS_SET_FLAGS, 0],
    [['relatime'], ALWAYS_SET_FLAGS, ATIME],
    [['noatime'], ALWAYS_SET_FLAGS | NOATIME, ATIME],
    [['strictatime'], ALWAYS_SET_FLAGS | STRICTATIME, ATIME],
    [['nodiratime'], ALWAYS_SET_FLAGS | NODIRATIME, 0],
    [['nosymfollow'], ALWAYS_SET_FLAGS | NOSYMFOLLOW, 0],
    [['noatime', 'nodiratime', 'noexec', 'ro'], ALWAYS_SET_FLAGS | NOATIME | NODIRATIME | NOEXEC | RDONLY, ATIME],
    [['size=64m', 'mode=0770', 'noexec'], ALWAYS_SET_FLAGS | NOEXEC, 0],
    [['unknown'], ALWAYS_SET_FLAGS, 0],
  ])('are parsed from the mount options %j', (options, set, clear) => {
    expect(parseMountFlags(options, false)).toEqual({ set, clear })
    expect(parseMountFlags(options, true)).toEqual({ set: set | RDONLY, clear })
  })

  it('for a read-only volume stay read-only if the options have rw', () => {
    expect(parseMountFlags(['rw'], true)).toEqual({ set: ALWAYS_SET_FLAGS | RDONLY, clear: 0 })
  })

  it.each([['rw'], ['suid'], ['dev'], ['exec']])(
    "are never cleared by %s, as the source's own mount may have them",
    (o) => {
      expect(MOUNT_OPTIONS_BY_NAME.get(o)).toMatchObject({ set: 0, clear: 0 })
    },
  )

  it('never clear flags other than the atime flags, for any mount options', () => {
    expect(parseMountFlags([...MOUNT_OPTIONS_BY_NAME.keys()], false).clear).toBe(ATIME)
  })
})

describe('the mount flags for a pod', () => {
  it('include every known flag except suid and dev', () => {
    expect(ORDINARY_MOUNT_OPTIONS).toEqual([
      'ro',
      'rw',
      'nosuid',
      'nodev',
      'noexec',
      'exec',
      'relatime',
      'noatime',
      'strictatime',
      'nodiratime',
      'nosymfollow',
    ])
  })

  it.each([
    [['ro', 'rw'], [['ro', 'rw']]],
    [['nosuid', 'suid'], [['nosuid', 'suid']]],
    [['dev', 'nodev'], [['dev', 'nodev']]],
    [['exec', 'noexec'], [['exec', 'noexec']]],
    [['noatime', 'relatime'], [['noatime', 'relatime']]],
    [
      ['noatime', 'relatime', 'strictatime'],
      [
        ['noatime', 'relatime'],
        ['noatime', 'strictatime'],
      ],
    ],
    [
      ['ro', 'dev', 'rw', 'nodev'],
      [
        ['ro', 'rw'],
        ['dev', 'nodev'],
      ],
    ],
  ])('%j contradict each other', (options, pairs) => {
    expect(findContradictingMountOptions(options)).toEqual(pairs)
  })

  it.each([
    [[]],
    [['ro', 'ro']],
    [['noatime', 'nodiratime']],
    [['ro', 'noexec', 'nosuid', 'nodev']],
    [['size=1', 'size=2']],
  ])('%j do not contradict each other', (options) => {
    expect(findContradictingMountOptions(options)).toEqual([])
  })
})

describe('the flags of a mount in the table', () => {
  it.each([
    [['rw', 'relatime'], 0, ATIME],
    [['rw'], STRICTATIME, ATIME],
    [['ro', 'nosuid', 'nodev', 'noexec', 'relatime'], RDONLY | NOSUID | NODEV | NOEXEC, ATIME],
    [['rw', 'noatime', 'nodiratime', 'nosymfollow'], NOATIME | NODIRATIME | NOSYMFOLLOW, ATIME],
    [['rw', 'relatime', 'idmapped'], 0, ATIME],
  ])('are parsed: %j', (options, set, clear) => {
    expect(parseMountRowFlags(options)).toEqual({ set, clear })
  })
})
