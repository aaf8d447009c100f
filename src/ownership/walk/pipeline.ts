import type { Handle, Inodes, Look, Stat } from '../../host/host.ts'
import type { OpenInode } from '../inode/attributes.ts'
import { ownershipOf, same } from '../inode/policy.ts'
import type { Found, InodeRecord } from '../inode/record.ts'
import { keysOf } from '../journal/codec.ts'
import { BATCHES, type BatchSettings } from './batch.ts'
import { type Change, isNeeded, makeChange } from './change.ts'
import type { Sighting } from './hard-links.ts'
import type { Answer, Ledger } from './ledger.ts'
import { PlainInodes } from './plain-inodes.ts'
import { leave, type WalkReport } from './report.ts'
import type { Task } from './tasks.ts'

// An ACL can have 64 KB.
const MOST_ACL_BYTES = 2_000_000

/** An inode to decide on. */
interface Candidate {
  inode: OpenInode
  path: Uint8Array
  /** Of an inode with several names: which this is. */
  name?: number | undefined
}

/** Recorded changes that are being made. */
interface Started {
  plain: PlainInodes
  changes: Change[]
  /** Undefined: nothing had to be recorded. */
  batch: bigint | undefined
}

/** Inodes on their way to be changed: while a batch is collected, the changes of the one before are made. */
export class Pipeline {
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #ledger: Ledger
  readonly #report: WalkReport
  readonly #settings: BatchSettings
  /** Those of all batches that are not plain. */
  readonly #held = new Set<OpenInode>()
  /** In turn: the first is being filled. */
  readonly #plain: PlainInodes[]
  #candidates: Candidate[] = []
  #aclBytes = 0
  #started: Started | undefined

  constructor(inodes: Inodes, task: Task, ledger: Ledger, report: WalkReport, settings: BatchSettings) {
    this.#inodes = inodes
    this.#task = task
    this.#ledger = ledger
    this.#report = report
    this.#settings = settings
    this.#plain = Array.from({ length: BATCHES }, () => new PlainInodes(inodes, settings.batchSize, task, ledger))
  }

  /**
   * As `take`, of an inode with one name.
   * @param at when it was looked at; `above` and `name`: its path
   * @returns false where it is not plain, and still the caller's
   */
  takePlain(handle: Handle, look: Look, at: number, above: Uint8Array, name: Uint8Array): boolean {
    if (this.#ledger.isSurvey || !this.#task.plain.takes(look)) return false
    if (!this.#filled.add(handle, look, at, above, name)) return false
    this.#report.visited++
    this.#turnIfFull()
    return true
  }

  /** The inode is decided on, recorded and changed with its batch, and closed then. @param name see Sighting */
  take(inode: OpenInode, path: Uint8Array, name?: number): void {
    this.#held.add(inode)
    this.#report.visited++
    this.#settings.observer?.visited(inode.stat)
    this.#candidates.push({ inode, path, name })
    this.#aclBytes += inode.acl?.length ?? 0
    this.#turnIfFull()
  }

  get #filled(): PlainInodes {
    return this.#plain[0] as PlainInodes
  }

  #turnIfFull(): void {
    const count = this.#candidates.length + this.#filled.count
    if (count >= this.#settings.batchSize || this.#aclBytes > MOST_ACL_BYTES) this.#turn()
  }

  /** Records and makes all there is. @returns whether there was anything */
  flush(): boolean {
    let any = false
    for (; this.#isFilled() || this.#started; any = true) this.#turn()
    return any
  }

  #isFilled(): boolean {
    return this.#candidates.length + this.#filled.count > 0
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const inode of this.#held) this.#letGo(inode)
    for (const plain of this.#plain) plain[Symbol.dispose]()
  }

  #letGo(inode: OpenInode): void {
    this.#held.delete(inode)
    this.#inodes.close(inode.handle)
  }

  /** Each batch goes one step on. */
  #turn(): void {
    const started = this.#started
    this.#started = undefined
    // Recorded while the changes of the other are being made.
    const next = this.#isFilled() ? this.#record() : undefined
    if (started) this.#finish(started)
    this.#started = next
    this.#settings.onStep?.()
  }

  #record(): Started | undefined {
    const [plain, candidates] = [this.#filled, this.#candidates]
    this.#plain.push(...this.#plain.splice(0, 1))
    this.#candidates = []
    this.#aclBytes = 0
    const asked = candidates.filter(({ inode, name }) => name !== undefined || this.#task.asksFor(inode.stat))
    const found = this.#ask(asked)
    const decided: Decided = { changes: [], records: [] }
    if (this.#task.plain.isAsked) {
      for (const index of plain.judge()) {
        const { inode, record } = plain.lookCloser(index)
        this.#held.add(inode)
        this.#decide({ inode, path: plain.pathOf(index) }, record, decided)
      }
    }
    const answered = new Map(asked.map((candidate, index) => [candidate, found[index]]))
    for (const candidate of candidates) {
      const answer = answered.get(candidate)
      if (answer === 'wait') this.#letGo(candidate.inode)
      else this.#decide(candidate, answer && this.#ledger.decode(answer, answer.settled), decided)
    }
    const { changes, records } = decided
    if (this.#ledger.isSurvey) return this.#reportOnly(changes)
    const encoded = plain.records()
    const batch = records.length + encoded.length > 0 ? this.#ledger.record(records, encoded) : undefined
    plain.start()
    return { plain, changes, batch }
  }

  /** What the journal holds of inodes that are not plain, or may be changed by this walk already. */
  #ask(asked: readonly Candidate[]): Answer[] {
    if (asked.length === 0) return []
    const sightings = new Map<number, Sighting>()
    for (const [index, { inode, path, name }] of asked.entries()) {
      const { stat, at } = inode
      const { inode: number, born, links, changed } = stat
      if (name !== undefined) sightings.set(index, { inode: number, born, links, changed, at, name, path })
    }
    return this.#ledger.ask({ keys: keysOf(asked.map(({ inode }) => inode.stat)), sightings })
  }

  #decide({ inode, path }: Candidate, known: InodeRecord | undefined, { changes, records }: Decided): void {
    const { change, settle, leave: reason, forfeits } = this.#task.decide(inode, path, known)
    if (reason) leave(this.#report, this.#isStill(inode) ? reason : 'changed during the walk', path)
    if (forfeits) leave(this.#report, 'privileges not given back', path)
    const record = change ?? settle
    if (record) records.push(record)
    if (change) changes.push({ inode, record: change })
    else this.#letGo(inode)
  }

  /** Nothing is recorded, so nothing may be changed. */
  #reportOnly(changes: readonly Change[]): undefined {
    for (const { inode, record } of changes) {
      this.#letGo(inode)
      this.#wouldChange(inode, record)
    }
  }

  /** An inode that is not held, in a walk that records nothing; its attributes have no say. */
  count(stat: Stat, path: Uint8Array): void {
    this.#report.visited++
    this.#settings.observer?.visited(stat)
    const found = { stat, capability: undefined, acl: undefined }
    const { change } = this.#task.decide(found, path, undefined)
    if (change) this.#wouldChange(found, change)
  }

  #wouldChange(found: Found, record: InodeRecord): void {
    if (!isNeeded(found, record)) this.#report.alreadyRight++
    else if (found.stat.immutable) leave(this.#report, 'immutable or append-only', record.path)
    else {
      this.#report.changed++
      this.#settings.observer?.wouldChange(found.stat, record)
    }
  }

  /** Another batch, that has the inode under another name, may have changed it since it was looked at. */
  #isStill({ handle, stat }: OpenInode): boolean {
    return same(ownershipOf(this.#inodes.ownership(handle)), ownershipOf(stat))
  }

  #finish({ plain, changes, batch }: Started): void {
    const ofPlain = plain.make(this.#report)
    const outcomeOf = (change: Change) => makeChange(this.#inodes, change, this.#report)
    const { made = [], untouched = [], refused = [] } = Object.groupBy(changes, outcomeOf)
    if (batch !== undefined) this.#ledger.settle(batch)
    const isOver = ({ record }: Change) => !this.#task.keeps?.(record)
    const done = this.#task.forgets ? [...made.filter(isOver), ...untouched] : untouched
    for (const keys of [ofPlain.forgotten, keysOf(done.map(({ record }) => record))]) {
      if (keys.length > 0) this.#ledger.forget(keys)
    }
    // Recorded as what they still are, so that the next walk or restore tries them again.
    const again = [...ofPlain.refused, ...refused.map(({ record }) => record)].map(asSeen)
    if (again.length > 0) this.#ledger.settle(this.#ledger.record(again))
    for (const { inode } of changes) this.#letGo(inode)
  }
}

/** Changes that are to be made, and records to be written for them and beside them. */
interface Decided {
  changes: Change[]
  records: InodeRecord[]
}

function asSeen(record: InodeRecord): InodeRecord {
  return { ...record, after: record.seen, acl: { ...record.acl, after: record.acl.seen } }
}
