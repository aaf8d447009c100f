import { expect, it } from 'vitest'
import { UnknownFormatRefusal } from '../../src/errors/refusal.ts'
import type { Host } from '../../src/kernel/host.ts'
import {
  listVolumeReservations,
  listVolumesWithReservation,
  removeStaleReservations,
  reservationRecords,
  type VolumeReservation,
} from '../../src/state/process-records.ts'
import { DamagedRecord } from '../../src/state/record.ts'
import type { Store } from '../../src/state/record-directories.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const RESERVATION: VolumeReservation = {
  volume: '1-2-3',
  source: '/srv/data',
  location: { device: '8:1', path: '/data' },
  group: 2000,
  pod: 'shop/cart',
  directory: '/pods/p/volumes/modekeep~fs/v',
}
const { location: _, ...PLACELESS } = { ...RESERVATION, volume: '1-2-4' }

/** Takes the lock that a call at work on a volume holds. */
function lock(host: Host, volume: string): void {
  host.files.makeDirectory(`/state/ownership/${volume}`)
  host.tryLock(`/state/ownership/${volume}/lock`)
}

const listed = (store: Store) => listVolumeReservations(store).map(({ record, problem }) => record ?? problem)

it('a reservation of a volume is read as it was written, and listed while its call runs, until the call removes it', () => {
  const store = { host: memoryHost(new MemoryWorld()), config: { stateDir: '/state' } }
  expect(listed(store)).toEqual([])
  reservationRecords.write(store, RESERVATION)
  reservationRecords.write(store, PLACELESS)
  expect(reservationRecords.read(store, '1-2-3')).toEqual(RESERVATION)
  expect(listed(store)).toEqual([])
  lock(store.host, '1-2-3')
  lock(store.host, '1-2-4')
  expect(listed(store)).toEqual([RESERVATION, PLACELESS])
  reservationRecords.remove(store, '1-2-3')
  reservationRecords.remove(store, '1-2-3')
  expect(listed(store)).toEqual([PLACELESS])
})

it.each([
  ["another version's", '{"format":2}', UnknownFormatRefusal],
  ['a damaged', '{"volume":"1-2-3"}', DamagedRecord],
])('%s reservation is never skipped while its call runs', (_what, text, problem) => {
  const store = { host: memoryHost(new MemoryWorld()), config: { stateDir: '/state' } }
  store.host.files.makeDirectory('/state/reservations')
  store.host.files.replace('/state/reservations/1-2-3.json', text)
  expect(listed(store)).toEqual([])
  lock(store.host, '1-2-3')
  expect(listed(store)).toEqual([expect.any(problem)])
})

it('complete and partial reservations of crashed calls are removed, those of running calls and foreign files stay', () => {
  const store = { host: memoryHost(new MemoryWorld()), config: { stateDir: '/state' } }
  const names = () => store.host.files.list('/state/reservations').sort()
  removeStaleReservations(store)
  reservationRecords.write(store, RESERVATION)
  reservationRecords.write(store, PLACELESS)
  for (const name of ['1-2-3.json.new', '1-2-5.json.new', 'notes.json', 'notes']) {
    store.host.files.replace(`/state/reservations/${name}`, 'half of')
  }
  lock(store.host, '1-2-3')
  expect(listVolumesWithReservation(store)).toEqual(['1-2-3', '1-2-4', '1-2-5'])
  expect(listed(store)).toEqual([RESERVATION])
  removeStaleReservations(store)
  expect(names()).toEqual(['1-2-3.json', '1-2-3.json.new', 'notes', 'notes.json'])
  expect(listed(store)).toEqual([RESERVATION])
})
