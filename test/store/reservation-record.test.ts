import { expect, it } from 'vitest'
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
  place: { device: '8:1', path: '/data' },
  group: 2000,
  pod: 'shop/cart',
  directory: '/pods/p/volumes/modekeep~fs/v',
}
const { place: _, ...PLACELESS } = { ...RESERVATION, volume: '1-2-4' }

it('reservations are read as they were written, and listed, until they are removed', () => {
  const host = memoryHost(new MemoryWorld())
  expect(listReservations(host, '/state')).toEqual([])
  writeReservation(host, '/state', RESERVATION)
  writeReservation(host, '/state', PLACELESS)
  expect(readReservation(host, '/state', '1-2-3')).toEqual(RESERVATION)
  expect(listReservations(host, '/state')).toEqual([RESERVATION, PLACELESS])
  removeReservation(host, '/state', '1-2-3')
  removeReservation(host, '/state', '1-2-3')
  expect(listReservations(host, '/state')).toEqual([PLACELESS])
})

it('what is no reservation reads as none', () => {
  const host = memoryHost(new MemoryWorld())
  writeReservation(host, '/state', RESERVATION)
  host.files.replace('/state/ownership/1-2-3/reservation.json', '{"volume":"1-2-3"}')
  expect(listReservations(host, '/state')).toEqual([])
})
