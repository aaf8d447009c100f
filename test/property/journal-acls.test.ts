import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { InodeRecord } from '../../src/ownership/inode/record.ts'
import { encodeInodeKeys } from '../../src/ownership/journal/codec.ts'
import { Journal } from '../../src/ownership/journal/journal.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'
import { holds } from './holds.ts'

const INODES = 12
const ACLS = Array.from({ length: 6 }, (_, at) => new Uint8Array(at * 37).fill(at))

type Acls = InodeRecord['acl']
type Step =
  | { do: 'record'; inodes: { inode: number; acl: Acls }[] }
  | { do: 'forget' | 'prune'; inodes: number[] }
  | { do: 'die' | 'end' }

const inode = fc.nat({ max: INODES - 1 })
const maybe = fc.option(fc.constantFrom(...ACLS), { nil: undefined })
const acl = fc.record({ before: maybe, seen: maybe, after: maybe })
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('record' as const), inodes: recordedOnce() }) },
    fc.record({ do: fc.constantFrom('forget' as const, 'prune' as const), inodes: fc.uniqueArray(inode) }),
    fc.record({ do: fc.constantFrom('die' as const, 'end' as const) }),
  ),
  { maxLength: 25 },
)

function recordedOnce() {
  return fc.uniqueArray(fc.record({ inode, acl }), { selector: (one) => one.inode, minLength: 1, maxLength: 5 })
}

const STATE = { gid: 5, mode: 0o640 }
const keyOf = (inode: number) => ({ inode: BigInt(inode), born: 1n })
const recordOf = (inode: number, acl: Acls): InodeRecord => ({
  ...keyOf(inode),
  path: new Uint8Array(),
  uid: 0,
  before: STATE,
  capability: undefined,
  acl,
  modified: 0n,
  size: 0n,
  seen: STATE,
  capabilityIntact: true,
  intended: STATE,
  forfeited: false,
  after: STATE,
  settled: true,
})

/** A journal, and what it is to hold. */
class Held {
  readonly #host = memoryHost(new MemoryWorld())
  readonly #acls = new Map<number, Acls>()
  #journal = this.#open()

  #open(): Journal {
    return Journal.open(this.#host, '/journal.db', 'v')
  }

  take(step: Step): void {
    if (step.do === 'record') this.#record(step.inodes)
    else if (step.do === 'forget') this.#forget(step.inodes)
    else if (step.do === 'prune') this.#prune(step.inodes)
    else {
      if (step.do === 'end') this.#journal.confirm()
      this.close()
      this.#journal = this.#open()
    }
    expect(found(this.#journal)).toEqual(this.#acls)
  }

  #record(inodes: { inode: number; acl: Acls }[]): void {
    this.#journal.settle(this.#journal.append(inodes.map(({ inode, acl }) => recordOf(inode, acl))))
    for (const { inode, acl } of inodes) {
      // What it was at first is never recorded again.
      const { before } = this.#acls.get(inode) ?? acl
      this.#acls.set(inode, { ...acl, before })
    }
  }

  #forget(inodes: number[]): void {
    this.#journal.forget(encodeInodeKeys(inodes.map(keyOf)))
    this.#journal.confirm()
    for (const inode of inodes) this.#acls.delete(inode)
  }

  /** Those that are gone are forgotten: of the others there is nothing in the table but what they refer to. */
  #prune(gone: number[]): void {
    for (const inode of gone) this.#acls.delete(inode)
    for (const inode of this.#acls.keys())
      this.#journal.markVisited(new DataView(encodeInodeKeys([keyOf(inode)]).buffer))
    this.#journal.forgetUnvisited()
    const used = new Set([...this.#acls.values()].flatMap(({ before, seen, after }) => [before, seen, after]))
    used.delete(undefined)
    const [{ count } = {}] = this.#host.openDatabase('/journal.db').prepare('SELECT count(*) AS count FROM acls').all()
    expect(Number(count)).toBeLessThanOrEqual(this.#acls.size === 0 ? 0 : used.size)
  }

  close(): void {
    this.#journal.close()
  }
}

function found(journal: Journal): Map<number, Acls> {
  const numbers = Array.from({ length: INODES }, (_, at) => at)
  const held = journal.find(encodeInodeKeys(numbers.map(keyOf)))
  return new Map(
    numbers.flatMap((inode) => {
      const record = held[inode]
      return record ? [[inode, journal.decode(record, true).acl] as const] : []
    }),
  )
}

it('recorded ACLs are read unchanged after crashes, and after other records were removed', () => {
  holds(
    steps,
    (all) => {
      const held = new Held()
      for (const step of all) held.take(step)
      held.close()
    },
    300,
  )
})
