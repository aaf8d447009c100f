import { describe, expect, it } from 'vitest'
import type { Handle, Stat } from '../../src/kernel/host.ts'
import { JOURNAL_FILE, type Store } from '../../src/state/record-directories.ts'
import { formatVolumeId } from '../../src/state/volume-id.ts'
import { computeVolumeNames, refuseRenamedVolume, resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const ROOT = 5 as Handle
const UUID = '0123456789abcdef0123456789abcdef'
const FORMER = 'ef53.00112233445566ff'
const BORN = 0xabcn
const [NOW, OLDER] = [`${UUID}-2-abc`, `${FORMER}-2-abc`]

interface Kernel {
  id?: string
  former?: string | undefined
  inode?: bigint
  born?: bigint
}

/** Creates a node whose kernel reports these properties of a root, and where these volumes are recorded. */
function arrange(kernel: Kernel, recorded: Record<string, string>) {
  const { id, former, inode, born } = { id: UUID, former: FORMER, inode: 2n, born: BORN, ...kernel }
  const world = new MemoryWorld()
  const host = memoryHost(world)
  const stat = { inode, born } as Stat
  host.inodes = { ...host.inodes, fileSystemId: () => id, formerFileSystemId: () => former, stat: () => stat }
  const store: Store = { host, config: { stateDir: '/state' } }
  for (const [volume, file] of Object.entries(recorded)) {
    world.fs.mkdirSync(`/state/ownership/${volume}`, { recursive: true })
    world.fs.writeFileSync(`/state/ownership/${volume}/${file}`, '')
  }
  return {
    store,
    named: () => resolveVolumeIdentity(store, ROOT, stat),
    names: () => {
      const { now, former } = computeVolumeNames(host, ROOT, stat)
      return { now: formatVolumeId(now), former: former && formatVolumeId(former) }
    },
  }
}

describe('the name of a volume on a kernel that reports UUIDs', () => {
  it.each([
    ['the new one if nothing is recorded', {}, {}, NOW],
    ['the new one if it is recorded', {}, { [NOW]: 'record.json' }, NOW],
    ['the older one if only that is recorded', {}, { [OLDER]: 'record.json' }, OLDER],
    ['the older one if only that has a journal', {}, { [OLDER]: JOURNAL_FILE }, OLDER],
    ['the new one if both are recorded', {}, { [OLDER]: 'record.json', [NOW]: JOURNAL_FILE }, NOW],
    ['the new one if the older has only a lock', {}, { [OLDER]: 'lock' }, NOW],
    ['the older one if the new has only a lock', {}, { [OLDER]: JOURNAL_FILE, [NOW]: 'lock' }, OLDER],
    ['the new one if f_fsid differs', { former: 'ef53.00112233445566fe' }, { [OLDER]: 'record.json' }, NOW],
    ['the new one if f_fsid is unknown', { former: undefined }, { [OLDER]: 'record.json' }, NOW],
    ['the new one of another root', { inode: 3n }, { [OLDER]: 'record.json' }, `${UUID}-3-abc`],
    ['the new one for a root with another birth time', { born: 0xabdn }, { [OLDER]: 'record.json' }, `${UUID}-2-abd`],
    ['the new one if the birth time is unknown', { born: 0n }, { [`${FORMER}-2-0`]: 'record.json' }, `${UUID}-2-0`],
    ['f_fsid if there is no UUID', { id: FORMER }, { [NOW]: 'record.json' }, OLDER],
  ])('is %s', (_what, kernel: Kernel, recorded: Record<string, string>, wanted) => {
    expect(arrange(kernel, recorded).named()).toBe(wanted)
  })

  it('is made of the UUID or of f_fsid, and only of f_fsid if the kernel reports no UUID', () => {
    expect(arrange({}, {}).names()).toEqual({ now: NOW, former: OLDER })
    expect(arrange({ id: FORMER }, {}).names()).toEqual({ now: OLDER, former: undefined })
  })

  it('is made of the UUID after the record with the older name was removed, and a call with the older name is refused', () => {
    const { store, named } = arrange({}, { [OLDER]: 'record.json' })
    expect(named()).toBe(OLDER)
    const check = (volume: string) => () => refuseRenamedVolume(store, volume, ROOT, '/srv/data')
    expect(check(OLDER)).not.toThrow()
    expect(check(NOW)).toThrow('another call has restored /srv/data meanwhile')
    volumeRecords.remove(store, OLDER)
    expect(named()).toBe(NOW)
    expect(check(OLDER)).toThrow('call this again')
    expect(check(NOW)).not.toThrow()
    expect(check('text-0123')).not.toThrow()
  })
})

const XFS = '58465342'
const [LOOP_0, LOOP_1] = [`${XFS}.0007000000000000-80-abc`, `${XFS}.0107000000000000-80-abc`]
const BY_UUID = `${UUID}-80-abc`
const A = ['image A']

interface Device {
  /** Undefined: the kernel reports no UUID. */
  id?: string | undefined
  born?: bigint
  gid?: number
  disk?: string[]
}

/** Creates a node with an xfs on the second loop device, where these volumes are recorded with these disks. */
function arrangeXfs(device: Device, recorded: Record<string, string[]>, complete = true) {
  const former = `${XFS}.0107000000000000`
  const { id = former, born = BORN, gid = 7, disk = A } = device
  const world = new MemoryWorld()
  const host = memoryHost(world)
  const stat = { inode: 0x80n, born, gid } as Stat
  host.inodes = { ...host.inodes, fileSystemId: () => id, formerFileSystemId: () => former, stat: () => stat }
  host.blocks = {
    ...host.blocks,
    backingOf: (handle) => ({ place: handle === ROOT ? 'loop1' : 'vda', shown: disk.join(), identities: disk }),
  }
  const store: Store = { host, config: { stateDir: '/state' } }
  const base = { source: '/srv', group: 2000, groupAccess: 'keep', complete, restorePending: false } as const
  for (const [volume, identities] of Object.entries(recorded)) {
    world.fs.mkdirSync(`/state/ownership/${volume}`, { recursive: true })
    const lay = identities.length === 0 ? undefined : { shown: identities.join(), identities }
    volumeRecords.write(store, { ...base, volume, disk: lay })
  }
  return resolveVolumeIdentity(store, ROOT, stat)
}

describe('the name of a volume on xfs whose loop device has changed', () => {
  it.each([
    ['its UUID if nothing is recorded', { id: UUID }, {}, BY_UUID],
    ['its UUID if that is recorded', { id: UUID }, { [BY_UUID]: A, [LOOP_0]: A }, BY_UUID],
    ['the recorded name of the same disk', { id: UUID }, { [LOOP_0]: A }, LOOP_0],
    ['the same without a UUID', {}, { [LOOP_0]: A }, LOOP_0],
    ['the recorded UUID of the same disk', {}, { [BY_UUID]: A }, BY_UUID],
    ['the recorded name if the disk is unknown', { id: UUID, disk: [] }, { [LOOP_0]: A }, LOOP_0],
    ['its UUID if another disk had its device', { id: UUID }, { [LOOP_1]: ['image B'] }, BY_UUID],
    ['a new name if another disk is recorded', {}, { [LOOP_0]: ['image B'] }, LOOP_1],
    ['its own recorded name before that of another disk', {}, { [LOOP_0]: A, [LOOP_1]: ['image B'] }, LOOP_0],
    [
      'the name of another disk if its group was applied by modekeep',
      { id: UUID, gid: 2000 },
      { [LOOP_0]: ['image B'] },
      LOOP_0,
    ],
    [
      'that of the same disk if it has no birth time',
      { id: UUID, born: 0n },
      { [`${XFS}.07-80-0`]: A },
      `${XFS}.07-80-0`,
    ],
    [
      'the recorded name of the same device number if birth time and disk are unknown',
      { id: UUID, born: 0n, disk: [] },
      { [`${XFS}.0107000000000000-80-0`]: A },
      `${XFS}.0107000000000000-80-0`,
    ],
    [
      'its UUID if birth time and disk are unknown',
      { id: UUID, born: 0n, disk: [] },
      { [`${XFS}.07-80-0`]: A },
      `${UUID}-80-0`,
    ],
  ])('is %s', (_what, device: Device, recorded: Record<string, string[]>, wanted) => {
    expect(arrangeXfs(device, recorded)).toBe(wanted)
  })
})

it('after an incomplete walk on another disk the volume keeps its recorded name, as its inodes may have the group', () => {
  expect(arrangeXfs({ id: UUID }, { [LOOP_0]: ['image B'] }, false)).toBe(LOOP_0)
})

describe('the name of a volume on ext4 whose kernel no longer reports a UUID', () => {
  it('is the recorded UUID from which f_fsid is computed', () => {
    const uuid = '00112233445566778899aabbccddeeff'
    const fsid = 'ef53.8888888888888888'
    expect(arrange({ id: fsid, former: fsid }, { [`${uuid}-2-abc`]: JOURNAL_FILE }).named()).toBe(`${uuid}-2-abc`)
    expect(arrange({ id: fsid, former: fsid }, { [NOW]: JOURNAL_FILE }).named()).toBe(`${fsid}-2-abc`)
    const older = { [`${fsid}-2-0`]: JOURNAL_FILE }
    expect(arrange({ id: uuid, former: fsid, born: 0n }, older).named()).toBe(`${fsid}-2-0`)
  })
})
