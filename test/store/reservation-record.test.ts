import { expect, it } from 'vitest'
import type { Host } from '../../src/host/host.ts'
import { UnknownFormat } from '../../src/refusal/refusal.ts'
import {
  listReservations,
  type Reservation,
  readReservation,
  removeReservation,
  writeReservation,
} from '../../src/store/reservation-record.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const RESERVATION: Reservation = {
  volume: '1-2-3',
  source: '/srv/data',
  location: { device: '8:1', path: '/data' },
  group: 2000,
  pod: 'shop/cart',
  directory: '/pods/p/volumes/modekeep~fs/v',
}
const { location: _, ...PLACELESS } = { ...RESERVATION, volume: '1-2-4' }

/** As a call at work on a volume has it. */
function lock(host: Host, volume: string): void {
  host.files.makeDirectory(`/state/ownership/${volume}`)
  host.tryLock(`/state/ownership/${volume}/lock`)
}

it('reservations are read as they were written, and listed while their calls are at work, until they are removed', () => {
  const host = memoryHost(new MemoryWorld())
  expect(listReservations(host, '/state')).toEqual([])
  writeReservation(host, '/state', RESERVATION)
  writeReservation(host, '/state', PLACELESS)
  expect(readReservation(host, '/state', '1-2-3')).toEqual(RESERVATION)
  expect(listReservations(host, '/state')).toEqual([])
  lock(host, '1-2-3')
  lock(host, '1-2-4')
  expect(listReservations(host, '/state')).toEqual([RESERVATION, PLACELESS])
  removeReservation(host, '/state', '1-2-3')
  removeReservation(host, '/state', '1-2-3')
  expect(listReservations(host, '/state')).toEqual([PLACELESS])
})

it('what is no reservation is passed over', () => {
  const host = memoryHost(new MemoryWorld())
  lock(host, '1-2-3')
  host.files.replace('/state/ownership/1-2-3/reservation.json', '{"volume":"1-2-3"}')
  expect(listReservations(host, '/state')).toEqual([])
})

it("another version's reservation is never passed over while its call is at work", () => {
  const host = memoryHost(new MemoryWorld())
  host.files.makeDirectory('/state/ownership/1-2-3')
  host.files.replace('/state/ownership/1-2-3/reservation.json', '{"format":2}')
  expect(listReservations(host, '/state')).toEqual([])
  lock(host, '1-2-3')
  expect(() => listReservations(host, '/state')).toThrow(UnknownFormat)
})
