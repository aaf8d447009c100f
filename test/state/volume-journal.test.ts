import { beforeEach, expect, it } from 'vitest'
import { locateVolumeRecords, type Store } from '../../src/state/record-directories.ts'
import { computeMaxRecordBytes, measureAllRecords, reserveJournalGrowth } from '../../src/state/volume-journal.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const MIB = 2 ** 20
const GROWTH = '/state/growth'

let world: MemoryWorld
let store: Store
/** Number of directory listings. */
let lists: number
beforeEach(() => {
  world = new MemoryWorld()
  const host = memoryHost(world)
  const { files } = host
  lists = 0
  host.files = {
    ...files,
    capacity: () => 200 * MIB,
    list: (path) => {
      lists++
      return files.list(path)
    },
  }
  store = { host, config: { stateDir: '/state' } }
  files.makeDirectory('/state')
})

/** Creates a journal of this size, as a walk does. */
function fill(volume: string, bytes: number): void {
  const { path } = locateVolumeRecords(store, volume)
  store.host.files.makeDirectory(path)
  world.fs.writeFileSync(`${path}/journal.db`, Buffer.alloc(bytes))
}
const volumeOf = (n: number) => `ab-${n.toString(16)}-1`

it('journals may take a tenth of the file system, at least 16 MiB, and any size if the capacity is unknown', () => {
  expect(computeMaxRecordBytes(store)).toBe(20 * MIB)
  store.host.files.capacity = () => 40 * MIB
  expect(computeMaxRecordBytes(store)).toBe(16 * MIB)
  fill(volumeOf(0), 17 * MIB)
  expect(() => reserveJournalGrowth(store, 0)).toThrow('17 MiB of the 16 MiB')
  store.host.files.capacity = () => undefined
  expect(computeMaxRecordBytes(store)).toBeUndefined()
  expect(reserveJournalGrowth(store, 0, MIB)).toBeGreaterThanOrEqual(MIB)
})

it('the journals of all volumes are measured once, and not again until the reserved bytes could exceed the limit', () => {
  for (let n = 0; n < 10; n++) fill(volumeOf(n), MIB)
  reserveJournalGrowth(store, 0)
  expect(lists).toBe(12)
  let given = 0
  for (lists = 0; lists === 0; ) given += reserveJournalGrowth(store, 0)
  // The reserved bytes were not used, so the same number can be reserved again.
  expect(given).toBeGreaterThan(9 * MIB)
  lists = 0
  reserveJournalGrowth(store, 0)
  expect(lists).toBe(0)
})

it('many small journals together may take no more space than one large journal', () => {
  let taken = 0
  const grow = () => {
    for (let n = 0; n < 1000; n++) {
      const given = reserveJournalGrowth(store, 0)
      fill(volumeOf(n), given)
      taken += given
    }
  }
  expect(grow).toThrow('of the 20 MiB that they may take')
  expect(taken).toBe(measureAllRecords(store).bytes)
  expect(taken).toBeGreaterThan(19 * MIB)
  expect(taken).toBeLessThanOrEqual(20 * MIB)
})

it('bytes of deleted journals can be reserved again', () => {
  fill(volumeOf(1), 15 * MIB)
  fill(volumeOf(2), 5 * MIB)
  const refused =
    /take 20 MiB of the 20 MiB .* "modekeep restore ab-1-1", which puts back the volume that takes most, 15 MiB/
  expect(() => reserveJournalGrowth(store, 0)).toThrow(refused)
  expect(() => reserveJournalGrowth(store, 0)).toThrow(refused)
  fill(volumeOf(2), 2 * MIB)
  // A large journal reserves more at once, but not more than the limit allows.
  expect(reserveJournalGrowth(store, 15 * MIB)).toBe(3 * MIB)
})

it.each([
  ['is missing', undefined],
  ['is empty', ''],
  ['was truncated in a line', '=100\n+5'],
  ['has lost its beginning', '+100\n'],
  ['was damaged', '=100\n\0\0\0\n'],
  ['has grown long', `=0\n${'+1\n'.repeat(30_000)}`],
])('a reservation file that %s is written again from the measured sizes', (_what, text) => {
  fill(volumeOf(1), 18 * MIB)
  reserveJournalGrowth(store, 0)
  if (text === undefined) world.fs.rmSync(GROWTH)
  else world.fs.writeFileSync(GROWTH, text)
  lists = 0
  const given = reserveJournalGrowth(store, 0)
  // The listings are of the volumes, the imports, and the one record directory.
  expect(lists).toBe(3)
  expect(String(world.fs.readFileSync(GROWTH))).toBe(`=${18 * MIB}\n+${given}\n`)
  expect(world.fs.statSync(GROWTH).mode & 0o777).toBe(0o600)
})
