import { beforeEach, describe, expect, it } from 'vitest'
import {
  applyGroupToNodeDirectory,
  refuseNodeDirectoryRestore,
  restoreNodeDirectory,
} from '../../src/fsgroup/volume-by-hand.ts'
import { createPathLookups } from '../../src/kernel/mount-table/responsiveness.ts'
import { explainOtherDiskAtPath, locateVolume } from '../../src/state/find-volume.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { createDiskStage, PLACE } from '../helpers/disk-stage.ts'
import type { Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'
import type { MemoryFileSystem } from '../memory-host/world.ts'

const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const

let stage: Stage
let disk: MemoryFileSystem
beforeEach(() => {
  ;({ stage, disk } = createDiskStage(['serial A', 'wwid A']))
})

const walk = (place = PLACE) =>
  stage.byHand(place, (session, opened) => applyGroupToNodeDirectory(session, opened, FS_GROUP))
const restore = (isForced = false) =>
  stage.byHand(PLACE, (session, opened) => restoreNodeDirectory(session, opened, isForced))
const volume = () => listVolumesWithRecords(stage)[0] ?? ''
const recorded = () => volumeRecords.read(stage, volume())?.disk
const files = () => groups(listTree(disk.fs as unknown as typeof stage.fs, '/'))
const DIFFER = /are of serial A, wwid A, and this is serial B: a copy, or a forged one/

describe('the recorded disk of a volume', () => {
  it('is written by a walk, and a walk on another disk is refused unless forced', async () => {
    await walk()
    expect(recorded()).toEqual({ shown: 'serial A, wwid A', identities: ['serial A', 'wwid A'] })
    disk.disk = ['serial B']
    const before = files()
    await expect(walk()).rejects.toThrow(DIFFER)
    await expect(restore()).rejects.toThrow(DIFFER)
    const look = (isForced: boolean) =>
      stage.byHand(PLACE, async (session, opened) => refuseNodeDirectoryRestore(session, opened, isForced))
    await expect(look(false)).rejects.toThrow(DIFFER)
    await look(true)
    expect(files()).toEqual(before)
    expect(await restore(true)).toMatchObject({ outcome: 'restored', otherDisk: expect.stringMatching(DIFFER) })
    expect(files().one).toBe(7)
    expect(stage.warnings).toEqual([expect.stringMatching(DIFFER)])
    // The volume is not recorded any more, so it is walked like any other.
    await walk()
    expect(recorded()).toEqual({ shown: 'serial B', identities: ['serial B'] })
  })

  it.each([
    ['f_fsid on ext4', 'ef53.00112233445566ff', true],
    ['f_fsid on xfs, which is the device number', '58465342.fd00', false],
  ])('of a volume named by %s is or is not distinguished by a new UUID', async (_, id, helps) => {
    Object.assign(disk, { id })
    await walk()
    disk.disk = ['serial B']
    const advice = await walk().catch(({ message }) => message)
    expect(advice).toContain('put the other one back')
    expect(advice.includes('give this one a new UUID')).toBe(helps)
  })

  it('is recognized by any of its names, and each walk records the current ones', async () => {
    await walk()
    disk.disk = ['wwid A', 'serial C']
    await walk()
    disk.disk = ['serial C']
    expect(await restore()).toMatchObject({ outcome: 'restored', otherDisk: undefined })
  })

  it('is not compared if the kernel reports no disk at the walk or now, and the recorded names stay', async () => {
    await walk()
    disk.disk = []
    await walk()
    expect(recorded()?.identities).toEqual(['serial A', 'wwid A'])
    expect(await restore()).toMatchObject({ outcome: 'restored' })
    await walk()
    disk.disk = ['serial B']
    await walk()
    expect(recorded()?.identities).toEqual(['serial B'])
  })

  it('is read from the journal if the record is damaged or lost', async () => {
    await walk()
    const path = `${stage.config.stateDir}/ownership/${volume()}/record.json`
    const whole = stage.fs.readFileSync(path)
    stage.fs.writeFileSync(path, '{')
    disk.disk = ['serial B']
    await expect(walk()).rejects.toThrow(DIFFER)
    await expect(restore()).rejects.toThrow(DIFFER)
    stage.fs.writeFileSync(path, whole)
    disk.disk = ['serial A']
    disk.fs.chmodSync('/one', 0o604)
    await restore()
    expect(volumeRecords.find(stage, volume()).record).toMatchObject({ left: 1 })
    stage.fs.rmSync(path)
    disk.disk = ['serial B']
    await expect(restore()).rejects.toThrow(/are of serial A, wwid A, and this is serial B/)
  })

  it('is used to find the volume, and a copy on another disk is not found', async () => {
    await walk()
    const lookups = createPathLookups(stage)
    const place = async (isAny = false) => (await locateVolume(stage.session(), volume(), lookups, isAny))?.path
    const other = () => explainOtherDiskAtPath(stage.session(), volume(), lookups)
    expect([await place(), await other()]).toEqual([PLACE, undefined])
    disk.disk = ['serial B']
    expect([await place(), await place(true)]).toEqual([undefined, PLACE])
    expect(await other()).toMatch(DIFFER)
  })

  it('is not compared if the records lie on the same disk, because a clone copies both', async () => {
    const source = '/node/volumes/data'
    makeTree(stage.fs, source, ['file two 0640 7'])
    const root = stage.world?.rootMount.fileSystem
    if (root === undefined) throw new Error('no stage in memory')
    root.disk = ['serial A']
    await walk(source)
    expect(recorded()).toEqual({
      shown: 'serial A that has the records',
      identities: ['serial A', 'with the records'],
    })
    root.disk = ['serial of the clone']
    await walk(source)
    root.disk = []
    await walk(source)
    expect(recorded()?.identities).toEqual(['with the records'])
    const { blocks, inodes } = stage.host
    const { backingOf } = blocks
    blocks.backingOf = (handle) =>
      inodes.pathOf(handle).startsWith(stage.config.stateDir)
        ? backingOf(handle)
        : { place: 'elsewhere', shown: 'image 1', identities: ['image 1'] }
    await expect(walk(source)).rejects.toThrow('are of the file system that has the records, and this is image 1')
  })
})
