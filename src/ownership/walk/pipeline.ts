import type { Inodes, Stat } from '../../host/host.ts'
import type { OpenInode } from '../inode/open-inode.ts'
import { ownershipOf, same } from '../inode/policy.ts'
import type { InodeRecord } from '../inode/record.ts'
import { type Change, isNeeded, makeChanges } from './change.ts'
import type { Sighting } from './hard-links.ts'
import type { Answer, Batch, Ledger } from './ledger.ts'
import { leave, type WalkReport } from './report.ts'
import type { Task } from './task.ts'

// One commit to disk for so many inodes.
const LARGEST_BATCH = 1000
const SMALLEST_BATCH = 8
// An ACL can have 64 KB.
const MOST_ACL_BYTES = 2_000_000
/** What a thread has open beside: directories on its way, and Node's own. */
const OTHER_HANDLES = 60
const PROCESS_HANDLES = 60

/**
 * How many inodes a thread may record at once: each is held from its look to its change, and while one batch is on its
 * way to disk the next is collected.
 * @param limit handles the process may have open (RLIMIT_NOFILE)
 */
export function batchSize(limit: number, threads: number): number {
  const each = (limit - PROCESS_HANDLES) / threads - OTHER_HANDLES
  return Math.max(SMALLEST_BATCH, Math.min(LARGEST_BATCH, Math.floor(each / 2)))
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
  /** Of an inode with several names: which this is, and when it was seen. */
  link: Link | undefined
}

export type Link = Pick<Sighting, 'name' | 'at'>

const ONLY_NAME: Link = { name: '', at: 0 }

interface Recorded {
  batch: Batch
  changes: Change[]
}

/**
 * Inodes on their way to be changed. A full batch is decided on and recorded, and while its records are on their way to
 * disk the next is collected; then its changes are made.
 */
export class Pipeline {
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #ledger: Ledger
  readonly #report: WalkReport
  readonly #settings: BatchSettings
  #candidates: Candidate[] = []
  #aclBytes = 0
  #recorded: Recorded | undefined

  constructor(inodes: Inodes, task: Task, ledger: Ledger, report: WalkReport, settings: BatchSettings) {
    this.#inodes = inodes
    this.#task = task
    this.#ledger = ledger
    this.#report = report
    this.#settings = settings
  }

  isEmpty(): boolean {
    return this.#candidates.length === 0 && this.#recorded === undefined
  }

  /** The inode is decided on, recorded and changed with its batch, and closed then. */
  take(inode: OpenInode, path: Uint8Array, link?: Link): void {
    this.#report.visited++
    this.#settings.observer?.visited(inode.stat)
    this.#candidates.push({ inode, path, link })
    this.#aclBytes += inode.acl?.length ?? 0
    if (this.#candidates.length >= this.#settings.batchSize || this.#aclBytes > MOST_ACL_BYTES) this.#turn()
  }

  /** Records and makes all there is. */
  flush(): void {
    while (!this.isEmpty()) this.#turn()
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const { inode } of [...this.#candidates, ...(this.#recorded?.changes ?? [])]) this.#inodes.close(inode.handle)
    this.#candidates = []
    this.#recorded = undefined
  }

  /** Records what was collected, and makes the changes that were recorded before. */
  #turn(): void {
    const previous = this.#recorded
    this.#recorded = this.#record()
    if (previous) this.#make(previous)
    this.#settings.onBatch?.()
  }

  #record(): Recorded | undefined {
    const candidates = this.#candidates
    this.#candidates = []
    this.#aclBytes = 0
    const answers = this.#answers(candidates)
    const changes: Change[] = []
    const records: InodeRecord[] = []
    for (const [index, { inode, path }] of candidates.entries()) {
      const answer = answers?.[index]
      const decided = answer === 'wait' ? {} : this.#task.decide(inode, path, answer)
      if (decided.leave) leave(this.#report, this.#isStill(inode) ? decided.leave : 'changed during the walk', path)
      if (decided.forfeits) leave(this.#report, 'privileges not given back', path)
      const record = decided.change ?? decided.settle
      if (record) records.push(record)
      if (decided.change) changes.push({ inode, record: decided.change })
      else this.#inodes.close(inode.handle)
    }
    if (records.length === 0) return undefined
    const batch = this.#ledger.record(records)
    if (batch === undefined) this.#reportOnly(changes)
    return batch && { batch, changes }
  }

  /** Nothing is recorded, so nothing may be changed. */
  #reportOnly(changes: readonly Change[]): void {
    for (const { inode, record } of changes) {
      this.#inodes.close(inode.handle)
      if (!isNeeded(inode, record)) this.#report.alreadyRight++
      else if (inode.stat.immutable) leave(this.#report, 'immutable or append-only', record.path)
      else {
        this.#report.changed++
        this.#settings.observer?.wouldChange(inode.stat, record)
      }
    }
  }

  /** Another thread, that met the inode under another name, may have changed it since it was looked at. */
  #isStill({ handle, stat }: OpenInode): boolean {
    return same(ownershipOf(this.#inodes.ownership(handle)), ownershipOf(stat))
  }

  /** Undefined: nothing had to be asked. */
  #answers(candidates: readonly Candidate[]): Answer[] | undefined {
    const asked: Sighting[] = []
    const places: number[] = []
    for (const [index, { inode, path, link = ONLY_NAME }] of candidates.entries()) {
      const { stat } = inode
      if (link === ONLY_NAME && !this.#task.asksFor(stat)) continue
      const { born, changed, links } = stat
      asked.push({ inode: stat.inode, born, changed, links: link === ONLY_NAME ? 1 : links, path, ...link })
      places.push(index)
    }
    if (asked.length === 0) return undefined
    const answers = this.#ledger.ask(asked)
    const byPlace: Answer[] = []
    for (const [index, place] of places.entries()) byPlace[place] = answers[index]
    return byPlace
  }

  #make({ batch, changes }: Recorded): void {
    try {
      batch.awaitDurable()
      const { made, untouched, refused } = makeChanges(this.#inodes, changes, this.#report)
      batch.settle()
      const done = this.#task.forgets ? [...made, ...untouched] : untouched
      if (done.length > 0) this.#ledger.forget(done)
      // Recorded as what they still are, so that the next walk or restore tries them again.
      if (refused.length > 0) this.#ledger.record(refused.map(asSeen))?.settle()
    } finally {
      for (const { inode } of changes) this.#inodes.close(inode.handle)
    }
  }
}

function asSeen(record: InodeRecord): InodeRecord {
  return { ...record, after: record.seen, acl: { ...record.acl, after: record.acl.seen } }
}
