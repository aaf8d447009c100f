import { expect, it } from 'vitest'
import { type Claim, listClaims, readClaim, removeClaim, writeClaim } from '../../src/store/reservation-record.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const CLAIM: Claim = {
  volume: '1-2-3',
  source: '/srv/data',
  place: { device: '8:1', path: '/data' },
  group: 2000,
  pod: 'shop/cart',
  directory: '/pods/p/volumes/modekeep~fs/v',
}
const { place: _, ...PLACELESS } = { ...CLAIM, volume: '1-2-4' }

it('claims are read as they were written, and listed, until they are removed', () => {
  const host = memoryHost(new MemoryWorld())
  expect(listClaims(host, '/state')).toEqual([])
  writeClaim(host, '/state', CLAIM)
  writeClaim(host, '/state', PLACELESS)
  expect(readClaim(host, '/state', '1-2-3')).toEqual(CLAIM)
  expect(listClaims(host, '/state')).toEqual([CLAIM, PLACELESS])
  removeClaim(host, '/state', '1-2-3')
  removeClaim(host, '/state', '1-2-3')
  expect(listClaims(host, '/state')).toEqual([PLACELESS])
})

it('what is no claim reads as none', () => {
  const host = memoryHost(new MemoryWorld())
  writeClaim(host, '/state', CLAIM)
  host.files.replace('/state/ownership/1-2-3/claim.json', '{"volume":"1-2-3"}')
  expect(listClaims(host, '/state')).toEqual([])
})
