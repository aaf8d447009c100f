import { describe, expect, it } from 'vitest'
import type { FsGroupRequest } from '../../../src/config/mount-request.ts'
import {
  BLOCK_DEVICE_TYPE,
  CHARACTER_DEVICE_TYPE,
  DIRECTORY_TYPE,
  REGULAR_FILE_TYPE,
  type Stat,
  SYMLINK_TYPE,
} from '../../../src/kernel/host.ts'
import {
  computeRequestedOwnership,
  extractOwnership,
  findUnchangeableInodeType,
  hasRequestedOwnership,
  isRegularFile,
  isRootMatchingFsGroup,
  isSameOwnership,
} from '../../../src/ownership/inode/policy.ts'
import { FS_GROUP } from '../../helpers/mount-records.ts'

const FIFO = 0o010000
const SOCKET = 0o140000

function stat(mode: number, gid = 5): Stat {
  return { mode, gid, uid: 0 } as Stat
}

const keep = (groupId: number): FsGroupRequest => ({ ...FS_GROUP, groupId })
const grant = (groupId: number): FsGroupRequest => ({ ...FS_GROUP, groupId, access: 'grant' })

function expectWanted(found: Stat, fsGroup: FsGroupRequest, mode: number): void {
  expect(findUnchangeableInodeType(found)).toBeUndefined()
  const wanted = computeRequestedOwnership(found, fsGroup)
  expect(wanted).toEqual({ gid: fsGroup.groupId, mode })
  expect(hasRequestedOwnership(found, fsGroup)).toBe(isSameOwnership(extractOwnership(found), wanted))
}

describe('the target state of an inode', () => {
  it.each<[string, number, number]>([
    ['a directory', DIRECTORY_TYPE | 0o755, 0o2755],
    ['a closed directory', DIRECTORY_TYPE | 0o000, 0o2000],
    ['a private directory', DIRECTORY_TYPE | 0o700, 0o2700],
    ['a directory with set-gid', DIRECTORY_TYPE | 0o2770, 0o2770],
    ['a directory with set-uid and sticky', DIRECTORY_TYPE | 0o5777, 0o7777],
    ['a file', REGULAR_FILE_TYPE | 0o640, 0o640],
    ['a file without permission bits', REGULAR_FILE_TYPE | 0o000, 0o000],
    ['a set-uid file', REGULAR_FILE_TYPE | 0o4755, 0o4755],
    ['a file with every bit', REGULAR_FILE_TYPE | 0o7777, 0o7777],
    ['a fifo', FIFO | 0o600, 0o600],
    ['a socket', SOCKET | 0o755, 0o755],
  ])('of %s with group access "keep" has the group, and set-gid on directories only', (_what, mode, wanted) => {
    for (const gid of [5, 2000]) expectWanted(stat(mode, gid), keep(2000), wanted)
  })

  it.each<[string, number, number]>([
    ['a directory', DIRECTORY_TYPE | 0o755, 0o2775],
    ['a closed directory', DIRECTORY_TYPE | 0o000, 0o2770],
    ['a directory with set-uid and sticky', DIRECTORY_TYPE | 0o5701, 0o7771],
    ['a file', REGULAR_FILE_TYPE | 0o640, 0o660],
    ['a file without permission bits', REGULAR_FILE_TYPE | 0o000, 0o660],
    ['a program', REGULAR_FILE_TYPE | 0o111, 0o771],
    ['a set-uid file', REGULAR_FILE_TYPE | 0o4755, 0o4775],
    ['a fifo', FIFO | 0o600, 0o660],
    ['a socket', SOCKET | 0o755, 0o775],
  ])('of %s with group access "grant" has the mode bits that kubelet adds', (_what, mode, wanted) => {
    expectWanted(stat(mode), grant(2000), wanted)
  })

  it('may request group 0', () => {
    expectWanted(stat(REGULAR_FILE_TYPE | 0o640), keep(0), 0o640)
  })

  it.each<[string, number, 'symlink' | 'device']>([
    ['a link', SYMLINK_TYPE | 0o777, 'symlink'],
    ['a block device', BLOCK_DEVICE_TYPE | 0o660, 'device'],
    ['a character device', CHARACTER_DEVICE_TYPE | 0o2666, 'device'],
  ])('is unchanged for the type %s', (_what, mode, leave) => {
    expect(findUnchangeableInodeType(stat(mode))).toBe(leave)
  })
})

it.each<[string, number, number, boolean]>([
  ['group and set-gid', DIRECTORY_TYPE | 0o2755, 2000, true],
  ['group and set-gid, with any other bits', DIRECTORY_TYPE | 0o7000, 2000, true],
  ['the group without set-gid', DIRECTORY_TYPE | 0o755, 2000, false],
  ['another group', DIRECTORY_TYPE | 0o2755, 5, false],
  ['neither', DIRECTORY_TYPE | 0o755, 5, false],
  ['a link of the group', SYMLINK_TYPE | 0o2777, 2000, false],
  ['a device of the group', BLOCK_DEVICE_TYPE | 0o2660, 2000, false],
])('isRootMatchingFsGroup of a root with %s: %#', (_what, mode, gid, matches) => {
  expect(isRootMatchingFsGroup(stat(mode, gid), keep(2000))).toBe(matches)
})

it.each([
  [0o2755, false],
  [0o775, false],
  [0o2770, true],
  [0o2777, true],
])('a volume root with mode %o matches a request with group access "grant": %s', (mode, matches) => {
  expect(isRootMatchingFsGroup(stat(DIRECTORY_TYPE | mode, 2000), grant(2000))).toBe(matches)
})

it('extractOwnership returns the group and the mode without type bits', () => {
  expect(extractOwnership(stat(REGULAR_FILE_TYPE | 0o6711))).toEqual({ gid: 5, mode: 0o6711 })
  expect(extractOwnership(stat(DIRECTORY_TYPE | 0o1777, 0))).toEqual({ gid: 0, mode: 0o1777 })
})

it.each([
  [{ gid: 5, mode: 0o640 }, true],
  [{ gid: 6, mode: 0o640 }, false],
  [{ gid: 5, mode: 0o641 }, false],
  [{ gid: 5, mode: 0o4640 }, false],
])('ownership %j equals group 5 with mode 0640: %s', (other, is) => {
  expect(isSameOwnership({ gid: 5, mode: 0o640 }, other)).toBe(is)
})

it.each([
  [REGULAR_FILE_TYPE, true],
  [DIRECTORY_TYPE, false],
  [SYMLINK_TYPE, false],
  [BLOCK_DEVICE_TYPE, false],
  [FIFO, false],
  [SOCKET, false],
])('type %o is a regular file: %s', (type, is) => {
  expect(isRegularFile(stat(type | 0o644))).toBe(is)
})
