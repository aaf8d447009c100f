import type { Inodes, Stat } from '../../host/host.ts'
import type { OpenInode } from '../inode/attributes.ts'
import { ownershipOf, same } from '../inode/policy.ts'
import { type Found, type InodeRecord, keyOf } from '../inode/record.ts'
import { keysOf } from '../journal/codec.ts'
import { type Change, isNeeded, makeChange } from './change.ts'
import type { Sighting } from './hard-links.ts'
import type { Answer, Batch, Ledger } from './ledger.ts'
import { leave, type WalkReport } from './report.ts'
import type { Task } from './tasks.ts'

// One commit to disk for so many inodes.
const LARGEST_BATCH = 700
const SMALLEST_BATCH = 8
// An ACL can have 64 KB.
const MOST_ACL_BYTES = 2_000_000
/** What a thread has open beside: directories on its way, and Node's own. */
const OTHER_HANDLES = 60
const PROCESS_HANDLES = 60

/** Being collected, asked for, and on its way to disk. */
const BATCHES = 3

/**
 * How many inodes a thread may record at once: each is held from its look to its change.
 * @param limit handles the process may have open (RLIMIT_NOFILE)
 */
export function batchSize(limit: number, threads: number): number {
  const each = (limit - PROCESS_HANDLES) / threads - OTHER_HANDLES
  return Math.max(SMALLEST_BATCH, Math.min(LARGEST_BATCH, Math.floor(each / BATCHES)))
}

/** Looks on at a walk. */
export interface Observer {
  /** Every inode, also one that is left. */
  visited(stat: Stat): void
  /** An inode that would be changed, in a walk that records nothing. */
  wouldChange(stat: Stat, record: InodeRecord): void
}

export interface BatchSettings {
  batchSize: number
  /** Called after every batch. */
  onBatch?: () => void
  observer?: Observer | undefined
}

/** An inode to decide on. */
interface Candidate {
  inode: OpenInode
  path: Uint8Array
  /** Of an inode with several names: which this is. */
  name: string | undefined
  /** What the journal holds of it, where it was asked for. */
  answer?: Answer
}

/** A batch of them, each of which is in `asked` where something has to be known of it. */
interface Asked {
  candidates: readonly Candidate[]
  asked: readonly Candidate[]
  answers: () => Answer[]
}

interface Recorded {
  batch: Batch
  changes: Change[]
}

/**
 * Inodes on their way to be changed, a batch at each step: while one is collected, the answers about the one before and
 * the records of the one before that are on their way. Then its changes are made.
 */
export class Pipeline {
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #ledger: Ledger
  readonly #report: WalkReport
  readonly #settings: BatchSettings
  readonly #held = new Set<OpenInode>()
  #candidates: Candidate[] = []
  #aclBytes = 0
  #asked: Asked | undefined
  #recorded: Recorded | undefined

  constructor(inodes: Inodes, task: Task, ledger: Ledger, report: WalkReport, settings: BatchSettings) {
    this.#inodes = inodes
    this.#task = task
    this.#ledger = ledger
    this.#report = report
    this.#settings = settings
  }

  /** The inode is decided on, recorded and changed with its batch, and closed then. @param name see Sighting */
  take(inode: OpenInode, path: Uint8Array, name?: string): void {
    this.#held.add(inode)
    this.#report.visited++
    this.#settings.observer?.visited(inode.stat)
    this.#candidates.push({ inode, path, name })
    this.#aclBytes += inode.acl?.length ?? 0
    if (this.#candidates.length >= this.#settings.batchSize || this.#aclBytes > MOST_ACL_BYTES) this.#turn()
  }

  /** Records and makes all there is. @returns whether there was anything */
  flush(): boolean {
    let any = false
    for (; this.#candidates.length > 0 || this.#asked || this.#recorded; any = true) this.#turn()
    return any
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const inode of this.#held) this.#letGo(inode)
  }

  #letGo(inode: OpenInode): void {
    this.#held.delete(inode)
    this.#inodes.close(inode.handle)
  }

  /** Each batch goes one step on. */
  #turn(): void {
    const [asked, recorded] = [this.#asked, this.#recorded]
    this.#asked = this.#ask(this.#candidates)
    this.#candidates = []
    this.#aclBytes = 0
    this.#recorded = undefined
    if (recorded) this.#make(recorded)
    if (asked) this.#recorded = this.#record(asked)
    this.#settings.onBatch?.()
  }

  #record({ candidates, asked, answers }: Asked): Recorded | undefined {
    for (const [index, answer] of answers().entries()) (asked[index] as Candidate).answer = answer
    const changes: Change[] = []
    const records: InodeRecord[] = []
    for (const { inode, path, answer } of candidates) {
      const decided = answer === 'wait' ? {} : this.#task.decide(inode, path, answer)
      if (decided.leave) leave(this.#report, this.#isStill(inode) ? decided.leave : 'changed during the walk', path)
      if (decided.forfeits) leave(this.#report, 'privileges not given back', path)
      const record = decided.change ?? decided.settle
      if (record) records.push(record)
      if (decided.change) changes.push({ inode, record: decided.change })
      else this.#letGo(inode)
    }
    if (records.length === 0) return undefined
    const batch = this.#ledger.record(records)
    if (batch === undefined) this.#reportOnly(changes)
    return batch && { batch, changes }
  }

  /** Nothing is recorded, so nothing may be changed. */
  #reportOnly(changes: readonly Change[]): void {
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

  /** Another thread, that met the inode under another name, may have changed it since it was looked at. */
  #isStill({ handle, stat }: OpenInode): boolean {
    return same(ownershipOf(this.#inodes.ownership(handle)), ownershipOf(stat))
  }

  #ask(candidates: readonly Candidate[]): Asked | undefined {
    if (candidates.length === 0) return undefined
    const asked = candidates.filter(({ inode, name }) => name !== undefined || this.#task.asksFor(inode.stat))
    if (asked.length === 0) return { candidates, asked, answers: () => [] }
    const sightings = new Map<number, Sighting>()
    for (const [index, { inode, path, name }] of asked.entries()) {
      const { stat, at } = inode
      const { links, changed } = stat
      if (name !== undefined) sightings.set(index, { key: keyOf(stat), links, changed, at, name, path })
    }
    const answers = this.#ledger.ask({ keys: keysOf(asked.map(({ inode }) => inode.stat)), sightings })
    return { candidates, asked, answers }
  }

  #make({ batch, changes }: Recorded): void {
    batch.awaitDurable()
    const outcomeOf = (change: Change) => makeChange(this.#inodes, change, this.#report)
    const { made = [], untouched = [], refused } = Object.groupBy(changes, outcomeOf)
    batch.settle()
    const done = this.#task.forgets ? [...made, ...untouched] : untouched
    if (done.length > 0) this.#ledger.forget(keysOf(done.map(({ record }) => record)))
    // Recorded as what they still are, so that the next walk or restore tries them again.
    if (refused) this.#ledger.record(refused.map(asSeen))?.settle()
    for (const { inode } of changes) this.#letGo(inode)
  }
}

function asSeen({ record }: Change): InodeRecord {
  return { ...record, after: record.seen, acl: { ...record.acl, after: record.acl.seen } }
}
