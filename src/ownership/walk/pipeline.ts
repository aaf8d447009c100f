import type { Handle, Inodes, Stat, StatView } from '../../kernel/host.ts'
import type { OpenInode } from '../inode/attributes.ts'
import { extractOwnership, isSameOwnership } from '../inode/policy.ts'
import type { InodeRecord, InodeState } from '../inode/record.ts'
import { encodeInodeKeys } from '../journal/codec.ts'
import { applyInodeChange, type InodeChange, isInodeChangeNeeded } from './change.ts'
import type { HardLinkVisit } from './hard-links.ts'
import { BATCHES_PER_PIPELINE, type JournalAnswer, type WalkBatchSettings, type WalkLedger } from './ledger.ts'
import { PlainInodes } from './plain-inodes.ts'
import { recordSkippedInode, type WalkReport } from './report.ts'
import type { WalkStrategy } from './strategies.ts'

const MAX_BATCH_ACL_BYTES = 2_000_000

/** An inode to decide on. */
interface InodeCandidate {
  inode: OpenInode
  path: Uint8Array
  /** Identifies the name, for an inode with several names. */
  name?: number | undefined
}

/** A recorded batch whose changes are being made. */
interface StartedInodeBatch {
  plain: PlainInodes
  changes: InodeChange[]
  /** Undefined: nothing had to be recorded. */
  batch: bigint | undefined
}

/**
 * Collects inodes into batches, records them and changes them. A batch is collected while the changes of the previous
 * one are made.
 */
export class InodeChangePipeline {
  readonly #inodes: Inodes
  readonly #strategy: WalkStrategy
  readonly #ledger: WalkLedger
  readonly #report: WalkReport
  readonly #settings: WalkBatchSettings
  /** Open inodes of all batches, except the plain ones. */
  readonly #open = new Set<OpenInode>()
  /** Used in turn; the first is being filled. */
  readonly #plain: PlainInodes[]
  #candidates: InodeCandidate[] = []
  #aclBytes = 0
  #started: StartedInodeBatch | undefined

  constructor(
    inodes: Inodes,
    strategy: WalkStrategy,
    ledger: WalkLedger,
    report: WalkReport,
    settings: WalkBatchSettings,
  ) {
    this.#inodes = inodes
    this.#strategy = strategy
    this.#ledger = ledger
    this.#report = report
    this.#settings = settings
    this.#plain = Array.from(
      { length: BATCHES_PER_PIPELINE },
      () => new PlainInodes(inodes, settings.batchSize, strategy, ledger),
    )
  }

  /**
   * Like `take`, for an inode with one name.
   * @param inspectedAtMs time before stat was called; `parentPath` and `name`: its path
   * @returns false if the inode is not plain; the caller then keeps the handle
   */
  takePlain(handle: Handle, stat: StatView, inspectedAtMs: number, parentPath: Uint8Array, name: Uint8Array): boolean {
    if (this.#ledger.isSurvey || !this.#strategy.plain.accepts(stat)) return false
    if (!this.#filling.add(handle, stat, inspectedAtMs, parentPath, name)) return false
    this.#report.visited++
    this.#advanceIfFull()
    return true
  }

  /**
   * Takes over an open inode, which is decided on, recorded, changed and closed with its batch, in order, after the
   * plain ones. @param name see HardLinkVisit
   */
  take(inode: OpenInode, path: Uint8Array, name?: number): void {
    this.#open.add(inode)
    this.#report.visited++
    this.#settings.observer?.onVisit(inode.stat)
    this.#candidates.push({ inode, path, name })
    this.#aclBytes += inode.acl?.length ?? 0
    this.#advanceIfFull()
  }

  get hasStarted(): boolean {
    return this.#started !== undefined
  }

  get #filling(): PlainInodes {
    return this.#plain[0] as PlainInodes
  }

  #advanceIfFull(): void {
    if (this.#collectedCount >= this.#settings.batchSize || this.#aclBytes > MAX_BATCH_ACL_BYTES) this.#advance()
  }

  /** Records and changes all collected inodes. @returns whether there were any */
  flush(): boolean {
    let any = false
    for (; this.#collectedCount > 0 || this.#started; any = true) this.#advance()
    return any
  }

  get #collectedCount(): number {
    return this.#candidates.length + this.#filling.count
  }

  /** Closes the inodes that were not changed, also after an error. */
  close(): void {
    for (const inode of this.#open) this.#closeInode(inode)
    for (const plain of this.#plain) plain[Symbol.dispose]()
  }

  #closeInode(inode: OpenInode): void {
    this.#open.delete(inode)
    this.#inodes.close(inode.handle)
  }

  /** Advances each batch by one step. */
  #advance(): void {
    const started = this.#started
    this.#started = undefined
    // Recorded while the changes of the previous batch are being made.
    const next = this.#collectedCount > 0 ? this.#recordBatch() : undefined
    if (started) this.#finishBatch(started)
    this.#started = next
    this.#settings.onStep?.()
  }

  #recordBatch(): StartedInodeBatch | undefined {
    const [plain, candidates] = [this.#filling, this.#candidates]
    this.#plain.push(...this.#plain.splice(0, 1))
    this.#candidates = []
    this.#aclBytes = 0
    const queried = candidates.filter(({ inode, name }) => name !== undefined || this.#strategy.needsRecord(inode.stat))
    const answers = this.#queryLedger(queried)
    const decided: DecidedInodeBatch = { changes: [], records: [] }
    if (this.#strategy.plain.needsRecords) {
      for (const index of plain.classify()) {
        const { inode, record } = plain.inspect(index)
        this.#open.add(inode)
        this.#decide({ inode, path: plain.getPath(index) }, record, decided)
      }
    }
    const answered = new Map(queried.map((candidate, index) => [candidate, answers[index]]))
    for (const candidate of candidates) {
      const answer = answered.get(candidate)
      if (answer === 'wait') this.#closeInode(candidate.inode)
      else this.#decide(candidate, answer && this.#ledger.decode(answer, answer.settled), decided)
    }
    const { changes, records } = decided
    if (this.#ledger.isSurvey) return this.#reportWithoutChange(changes)
    const encoded = plain.records()
    const batch = records.length + encoded.length > 0 ? this.#ledger.record(records, encoded) : undefined
    plain.start()
    return { plain, changes, batch }
  }

  /** Queries the records of inodes that are not plain, or that this walk may have changed. */
  #queryLedger(queried: readonly InodeCandidate[]): JournalAnswer[] {
    if (queried.length === 0) return []
    const sightings = new Map<number, HardLinkVisit>()
    for (const [index, { inode, path, name }] of queried.entries()) {
      const { stat, inspectedAtMs } = inode
      const { inode: number, born, links, changed } = stat
      if (name !== undefined)
        sightings.set(index, { inode: number, born, links, changed, statTimeMs: inspectedAtMs, name, path })
    }
    return this.#ledger.query({ keys: encodeInodeKeys(queried.map(({ inode }) => inode.stat)), sightings })
  }

  #decide(
    { inode, path }: InodeCandidate,
    earlier: InodeRecord | undefined,
    { changes, records }: DecidedInodeBatch,
  ): void {
    const { change, settle, skip: reason, forfeits } = this.#strategy.decide(inode, path, earlier)
    if (reason) recordSkippedInode(this.#report, this.#isUnchanged(inode) ? reason : 'changed during the walk', path)
    if (forfeits) recordSkippedInode(this.#report, 'privileges not given back', path)
    const record = change ?? settle
    if (record) records.push(record)
    if (change) changes.push({ inode, record: change })
    else this.#closeInode(inode)
  }

  /** Reports changes without making them, because nothing was recorded. */
  #reportWithoutChange(changes: readonly InodeChange[]): undefined {
    for (const { inode, record } of changes) {
      this.#closeInode(inode)
      this.#reportWouldChange(inode, record)
    }
  }

  /** Counts an inode that is not open, in a survey that does not depend on its attributes. */
  countByStat(stat: Stat, path: Uint8Array): void {
    this.#report.visited++
    this.#settings.observer?.onVisit(stat)
    const state = { stat, capability: undefined, acl: undefined }
    const { change } = this.#strategy.decide(state, path, undefined)
    if (change) this.#reportWouldChange(state, change)
  }

  #reportWouldChange(found: InodeState, record: InodeRecord): void {
    if (!isInodeChangeNeeded(found, record)) this.#report.alreadyRight++
    else if (found.stat.immutable) recordSkippedInode(this.#report, 'immutable or append-only', record.path)
    else {
      this.#report.changed++
      this.#settings.observer?.onWouldChange(found.stat, record)
    }
  }

  /** Another batch may have changed the inode under another name. */
  #isUnchanged({ handle, stat }: OpenInode): boolean {
    return isSameOwnership(extractOwnership(this.#inodes.ownership(handle)), extractOwnership(stat))
  }

  #finishBatch({ plain, changes, batch }: StartedInodeBatch): void {
    const plainResult = plain.finishChanges(this.#report)
    const apply = (change: InodeChange) => applyInodeChange(this.#inodes, change, this.#report)
    const { made = [], untouched = [], refused = [] } = Object.groupBy(changes, apply)
    if (batch !== undefined) this.#ledger.settle(batch)
    const isOver = ({ record }: InodeChange) => !this.#strategy.keepsRecord?.(record)
    const done = this.#strategy.forgetsRecords ? [...made.filter(isOver), ...untouched] : untouched
    for (const keys of [plainResult.forgotten, encodeInodeKeys(done.map(({ record }) => record))]) {
      if (keys.length > 0) this.#ledger.forget(keys)
    }
    // Recorded with their present state, so that the next walk or restore tries them again.
    const retried = [...plainResult.refused, ...refused.map(({ record }) => record)].map(setTargetToSeenState)
    if (retried.length > 0) this.#ledger.settle(this.#ledger.record(retried))
    for (const { inode } of changes) this.#closeInode(inode)
  }
}

/** Changes to make, and records to write. */
interface DecidedInodeBatch {
  changes: InodeChange[]
  records: InodeRecord[]
}

function setTargetToSeenState(record: InodeRecord): InodeRecord {
  return { ...record, after: record.seen, acl: { ...record.acl, after: record.acl.seen } }
}
