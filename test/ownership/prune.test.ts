import { expect, it } from 'vitest'
import { IndexedRecordLog } from '../../src/ownership/journal/records.ts'
import { RecordLog } from '../../src/ownership/journal/tables.ts'
import { applyGroupToTree, pruneJournal, restoreTreeOwnership } from '../../src/ownership/walks.ts'
import { letTicksPass, listTree, makeTree, modes } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'
import { MemoryVolume } from './volume.ts'

const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
const GONE = 1500

/** A volume of which most inodes that were recorded are gone. */
async function arrange(): Promise<MemoryVolume> {
  const volume = new MemoryVolume()
  const gone = Array.from({ length: GONE }, (_, index) => `file gone/${index}${'x'.repeat(800)} 0640 5`)
  makeTree(volume.fs, volume.directory, ['file kept 0640 5', 'dir deep 0755', 'file deep/kept 0600 7', ...gone])
  await letTicksPass()
  await walk(volume)
  volume.fs.rmSync(`${volume.directory}/gone`, { recursive: true })
  return volume
}

const walk = (volume: MemoryVolume) =>
  volume.call((root, journal) => applyGroupToTree(volume.host.inodes, root, fsGroup, journal))
const putBack = (volume: MemoryVolume) =>
  volume.call((root, journal) => restoreTreeOwnership(volume.host.inodes, root, journal))
const pruned = (volume: MemoryVolume) =>
  volume.call(async (root, journal) => (await pruneJournal(volume.host.inodes, root, journal)).isPruned)
const recorded = (volume: MemoryVolume) =>
  volume.call(async () => {
    const sql = volume.host.openDatabase('/journal.db').createTagStore()
    return new IndexedRecordLog(new RecordLog(sql, 'v'), { has: () => true }).size
  })
const modesOf = (volume: MemoryVolume) => modes(listTree(volume.fs, volume.directory))

it('a prune of a journal removes the records of deleted inodes, and keeps those of existing inodes', async () => {
  const volume = await arrange()
  expect(await recorded(volume)).toBeGreaterThan(GONE)
  await walk(volume)
  expect(await recorded(volume)).toBe(4)
  const [{ size } = {}] = volume.host
    .openDatabase('/journal.db')
    .prepare('SELECT sum(length(records)) AS size FROM log')
    .all()
  expect(size).toBeLessThan(1000n)
  expect((await putBack(volume)).changed).toBe(4)
  expect(modesOf(volume)).toMatchObject({ kept: '0640', deep: '0755', 'deep/kept': '0600' })
})

it('a restore also removes the records of deleted inodes, which it cannot visit', async () => {
  const volume = await arrange()
  await putBack(volume)
  expect(await recorded(volume)).toBe(0)
})

it('a prune removes no record if a directory was moved during the walk', async () => {
  const volume = await arrange()
  const { look } = volume.host.inodes
  let isMoved = false
  volume.host.inodes.look = (handle) => {
    if (!isMoved) volume.fs.renameSync(`${volume.directory}/deep/kept`, `${volume.directory}/moved`)
    isMoved = true
    return look(handle)
  }
  expect(await pruned(volume)).toBe(false)
  expect(isMoved).toBe(true)
  expect(await recorded(volume)).toBeGreaterThan(GONE)
  expect(await pruned(volume)).toBe(true)
  expect(await recorded(volume)).toBe(4)
})

it('a crash at any action of a prune removes no record of an existing inode', async () => {
  const kept = await arrange()
  await putBack(kept)
  let deaths = 0
  for (let at = 0, isDead = true; isDead; at++) {
    const volume = await arrange()
    volume.world.killAt = at
    isDead = await pruned(volume).then(
      () => false,
      (error) => {
        if (!(error instanceof Killed)) throw error
        return true
      },
    )
    volume.world.revive()
    deaths += Number(isDead)
    expect(await recorded(volume)).toBeGreaterThanOrEqual(4)
    expect((await putBack(volume)).changed).toBe(4)
    expect(modesOf(volume)).toEqual(modesOf(kept))
  }
  expect(deaths).toBeGreaterThan(1)
})

it('a prune removes the record of an unfinished change of a deleted inode', async () => {
  const volume = new MemoryVolume()
  makeTree(volume.fs, volume.directory, ['file kept 0640 5', 'file gone 0640 5'])
  await letTicksPass()
  const { chown } = volume.host.inodes
  volume.host.inodes.chown = () => {
    throw new Killed()
  }
  await expect(walk(volume)).rejects.toThrow(Killed)
  volume.host.inodes.chown = chown
  const unfinished = () => volume.call(async (_, journal) => journal.readUnfinished().length)
  expect(await unfinished()).toBeGreaterThan(0)
  volume.fs.rmSync(`${volume.directory}/gone`)
  await walk(volume)
  expect(await unfinished()).toBe(0)
  expect(await recorded(volume)).toBe(2)
})
