import { expect, it } from 'vitest'
import { type InodeRecord, NO_ACL } from '../../../src/ownership/inode/record.ts'
import { encode, split } from '../../../src/ownership/journal/codec.ts'
import type { Sighting } from '../../../src/ownership/walk/hard-links.ts'
import type { EncodedAnswer } from '../../../src/ownership/walk/ledger.ts'
import {
  answerEach,
  changedOf,
  countsIn,
  packKeys,
  packSightings,
  QUEUED,
  STOP,
  sharedSize,
  signalOf,
  unpackAnswers,
  unpackKeys,
  visitedOf,
} from '../../../src/ownership/workers/messages.ts'

const HUGE = 2n ** 64n - 1n

function sighting(inode: bigint, links = 1): Sighting {
  const name = links > 1 ? { name: `dir/${inode}`, at: 12, path: Buffer.from(`p${inode}`) } : undefined
  return { inode, born: -1n, links, changed: 1.25, ...(name ?? { name: '', at: 0, path: new Uint8Array() }) }
}

function record(inode: bigint, settled: boolean): InodeRecord {
  const state = { gid: 5, mode: 0o640 }
  return {
    inode,
    born: -1n,
    path: Uint8Array.from(Buffer.from('a')),
    uid: 0,
    before: state,
    capability: null,
    acl: NO_ACL,
    modified: 1n,
    size: 2n,
    seen: state,
    seenWhole: true,
    meant: state,
    forfeited: false,
    after: { gid: 2000, mode: 0o640 },
    settled,
  }
}

function encoded(inode: bigint, settled: boolean): EncodedAnswer {
  const [one] = split(encode([record(inode, settled)]))
  return one && { ...one, settled }
}

it('sightings come out as they went in, each answered in its turn', () => {
  const sightings = [sighting(1n), sighting(HUGE, 3), sighting(2n), sighting(3n, 2)]
  const met: Sighting[] = []
  const packed = answerEach(packSightings(sightings), (one) => void met.push(one) as undefined, undefined)
  expect(met).toEqual(sightings)
  expect(unpackAnswers(packed)).toEqual([undefined, undefined, undefined, undefined])
})

it('answers of every kind come back in their order, whatever memory they are put into', () => {
  const answers: Record<string, EncodedAnswer> = {
    1: undefined,
    2: 'wait',
    3: encoded(3n, true),
    4: encoded(4n, false),
  }
  const sightings = [1n, 2n, 3n, 4n, 2n].map((inode) => sighting(inode))
  for (const memory of [undefined, new ArrayBuffer(8), new ArrayBuffer(10_000)]) {
    const packed = answerEach(packSightings(sightings), ({ inode }) => answers[String(inode)], memory)
    expect(unpackAnswers(packed)).toEqual([undefined, 'wait', record(3n, true), record(4n, false), 'wait'])
  }
})

it('keys use all 64 bits', () => {
  const keys = [record(HUGE, true), record(0n, true)].map(({ inode, born }) => ({ inode, born }))
  expect(unpackKeys(packKeys(keys))).toEqual(keys)
})

it('every worker has places of its own in the shared memory', () => {
  const places = [QUEUED, STOP, ...[0, 1, 2].flatMap((index) => [signalOf(index), visitedOf(index), changedOf(index)])]
  expect(new Set(places).size).toBe(sharedSize(3))
  expect(Math.max(...places)).toBe(sharedSize(3) - 1)
})

it('counts are those of all workers together', () => {
  const shared = new Int32Array(sharedSize(2))
  for (const index of [0, 1]) shared.set([7 + index, 1], visitedOf(index))
  expect(countsIn(shared, 2)).toEqual({ visited: 15, changed: 2 })
  expect(countsIn(shared, 1)).toEqual({ visited: 7, changed: 1 })
})
