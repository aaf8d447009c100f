import { expect, it } from 'vitest'
import { type InodeRecord, keyOf, NO_ACL } from '../../../src/ownership/inode/record.ts'
import { encode, keysOf, split } from '../../../src/ownership/journal/codec.ts'
import type { Journal } from '../../../src/ownership/journal/journal.ts'
import type { Sighting } from '../../../src/ownership/walk/hard-links.ts'
import { type EncodedAnswer, JournalLedger } from '../../../src/ownership/walk/ledger.ts'
import { packAnswers, QUEUED, STOP, signalOf, unpackAnswers } from '../../../src/ownership/workers/messages.ts'

const HUGE = 2n ** 64n - 1n

function sighting(inode: bigint, links: number): Sighting {
  const key = keyOf({ inode, born: -1n })
  return { key, links, changed: 1.25, name: `dir/${inode}`, at: 12, path: Uint8Array.of(Number(inode % 9n)) }
}

function record(inode: bigint, settled: boolean): InodeRecord {
  const state = { gid: 5, mode: 0o640 }
  return {
    inode,
    born: -1n,
    path: Uint8Array.from(Buffer.from('a')),
    uid: 0,
    before: state,
    capability: undefined,
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

it('inodes that are asked for arrive as they were sent, each answered in its turn', () => {
  const inodes = [1n, HUGE, 2n, 3n].map((inode) => ({ inode, born: -1n }))
  const sightings = new Map([
    [1, sighting(HUGE, 3)],
    [3, sighting(3n, 2)],
  ])
  const [met, asked]: [Sighting[], bigint[][]] = [[], []]
  const journal = { find: (...key: bigint[]) => void asked.push(key) } as unknown as Journal
  const names = { addName: (one: Sighting) => met.push(one) === 1 }
  const question = structuredClone({ keys: keysOf(inodes), sightings })
  expect([...new JournalLedger(journal, names, false).find(question)]).toEqual([
    undefined,
    undefined,
    undefined,
    'wait',
  ])
  expect(met).toEqual([...sightings.values()])
  expect(asked.map(([inode = 0n, born]) => ({ inode: BigInt.asUintN(64, inode), born }))).toEqual(inodes.slice(0, 3))
})

it('answers of every kind come back in their order', () => {
  const answers = [undefined, 'wait' as const, encoded(3n, true), encoded(4n, false), 'wait' as const]
  const packed = structuredClone(packAnswers(answers))
  expect(unpackAnswers(packed)).toEqual([undefined, 'wait', record(3n, true), record(4n, false), 'wait'])
})

it('keys use all 64 bits', () => {
  const keys = [record(HUGE, true), record(0n, true)].map(({ inode, born }) => ({ inode, born }))
  const [one = 0n, ...rest] = keysOf(keys)
  expect([BigInt.asUintN(64, one), ...rest]).toEqual([HUGE, -1n, 0n, -1n])
})

it('every worker has a place of its own in the shared memory', () => {
  const places = [QUEUED, STOP, ...[0, 1, 2].map(signalOf)]
  expect(new Set(places).size).toBe(signalOf(3))
  expect(Math.max(...places)).toBe(signalOf(3) - 1)
})
