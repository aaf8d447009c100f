import type { InodeRecord } from '../inode/record.ts'
import { decode, Joiner, split } from '../journal/codec.ts'
import type { Sighting } from '../walk/hard-links.ts'
import type { Answer, EncodedAnswer } from '../walk/ledger.ts'
import type { PackedAnswers, PackedSightings } from './messages.ts'

const NO_RECORD = 0
const WAIT = 1
const SETTLED = 2
const UNSETTLED = 3
const PER_KEY = 2
const ONLY_NAME = { name: '', at: 0, path: new Uint8Array() }

export function packSightings(sightings: readonly Sighting[]): PackedSightings {
  const keys = new BigInt64Array(sightings.length * PER_KEY)
  const changed = Float64Array.from(sightings, (sighting) => sighting.changed)
  const names: PackedSightings['names'] = []
  for (const [index, { inode, born, links, name, at, path }] of sightings.entries()) {
    keys[index * PER_KEY] = BigInt.asIntN(64, inode)
    keys[index * PER_KEY + 1] = born
    if (links > 1) names.push({ name, at, path })
  }
  return { keys, changed, links: Uint32Array.from(sightings, ({ links }) => links), names }
}

/** Answers them one by one, so that nothing of a sighting or a record is kept in between. */
export function answerEach(
  { keys, changed, links, names }: PackedSightings,
  answer: (sighting: Sighting) => EncodedAnswer,
  memory: ArrayBuffer | undefined,
): PackedAnswers {
  const kinds = new Uint8Array(links.length)
  const records = new Joiner(memory)
  const remaining = names.values()
  for (const [index, count] of links.entries()) {
    const answered = answer({
      inode: BigInt.asUintN(64, keys[index * PER_KEY] ?? 0n),
      born: keys[index * PER_KEY + 1] ?? 0n,
      changed: changed[index] ?? 0,
      links: count,
      ...((count > 1 && remaining.next().value) || ONLY_NAME),
    })
    kinds[index] = kindOf(answered)
    if (typeof answered === 'object') records.add(answered)
  }
  return { kinds, records: records.bytes }
}

function kindOf(answer: EncodedAnswer): number {
  if (answer === undefined) return NO_RECORD
  if (answer === 'wait') return WAIT
  return answer.settled ? SETTLED : UNSETTLED
}

export function unpackAnswers({ kinds, records }: PackedAnswers): Answer[] {
  const encoded = split(records)
  return Array.from(kinds, (kind) => {
    if (kind === NO_RECORD) return undefined
    if (kind === WAIT) return 'wait'
    const next = encoded.next()
    return next.done ? undefined : decode(next.value, kind === SETTLED)
  })
}

export function packKeys(records: readonly Pick<InodeRecord, 'inode' | 'born'>[]): BigInt64Array {
  return BigInt64Array.from(records.flatMap(({ inode, born }) => [BigInt.asIntN(64, inode), born]))
}

export function unpackKeys(keys: BigInt64Array): { inode: bigint; born: bigint }[] {
  const unpacked = []
  for (let at = 0; at < keys.length; at += 2) {
    unpacked.push({ inode: BigInt.asUintN(64, keys[at] ?? 0n), born: keys[at + 1] ?? 0n })
  }
  return unpacked
}
