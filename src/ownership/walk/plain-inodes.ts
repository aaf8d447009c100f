import type { FileChange, FileChangeBatch, Handle, Inodes, StatView } from '../../kernel/host.ts'
import { inspectInode, type OpenInode, readAcl } from '../inode/attributes.ts'
import { extractOwnership, isSameOwnership, SET_ID_MODE_BITS } from '../inode/policy.ts'
import type { InodeRecord } from '../inode/record.ts'
import type { RecordedInodeStates } from '../journal/record-index.ts'
import { applyInodeChange, canDelegateFileChange, changePlainInode } from './change.ts'
import { skipDeletedInode } from './deleted-inode.ts'
import { SELF_ENTRY_NAME } from './entry.ts'
import type { WalkLedger } from './ledger.ts'
import { PlainInodeColumns } from './plain-columns.ts'
import { recordSkippedInode, type WalkReport } from './report.ts'
import type { WalkStrategy } from './strategies.ts'

type InodeChangeOutcome = ReturnType<typeof applyInodeChange>

/** Inodes whose outcome must still be recorded after the changes. */
export interface PlainInodeResult {
  /** Inodes with nothing left to restore: inode and birth time of each in turn. */
  forgotten: BigInt64Array
  refused: InodeRecord[]
}

/** Open inodes with one name, and without set-id bits, capability and ACL: most of a volume. */
export class PlainInodes implements Disposable {
  readonly #inodes: Inodes
  readonly #strategy: WalkStrategy
  readonly #columns: PlainInodeColumns
  readonly #ledger: WalkLedger
  /** Inode and birth time of each in turn, to query the journal. */
  readonly #keys: BigInt64Array
  /** The journal was queried for each inode. */
  #isClassified = false
  readonly #changes: FileChangeBatch | undefined
  /** One reused object, so that no inode leaves garbage. */
  readonly #fileChange: FileChange
  /** Indexes of inodes that other threads change, in order, and of those that are changed here. */
  #delegated: number[] = []
  #local: number[] = []
  #isStarted = false

  constructor(inodes: Inodes, maxCount: number, strategy: WalkStrategy, ledger: WalkLedger) {
    this.#inodes = inodes
    this.#strategy = strategy
    this.#ledger = ledger
    this.#columns = new PlainInodeColumns(maxCount)
    this.#keys = new BigInt64Array(maxCount * 2)
    this.#changes = inodes.changes(maxCount)
    this.#fileChange = {
      handle: 0 as Handle,
      seenGroup: 0,
      seenMode: 0,
      changed: 0,
      needsSameTime: false,
      group: 0,
      mode: 0,
    }
  }

  get count(): number {
    return this.#columns.count
  }

  /**
   * @param inspectedAtMs time before stat was called; `parentPath` and `name`: its path
   * @returns false if the inode is not taken; the caller then keeps the handle
   */
  add(handle: Handle, seen: StatView, inspectedAtMs: number, parentPath: Uint8Array, name: Uint8Array): boolean {
    return this.#columns.add(handle, seen, inspectedAtMs, parentPath, name, this.#strategy.plain)
  }

  /**
   * Decides by the journal's records, and closes the inodes that need no change.
   * @returns the indexes of inodes that need a full inspection
   */
  classify(): number[] {
    for (let index = 0; index < this.count; index++) this.#columns.putKey(this.#keys, index, index)
    const answers = this.#ledger.findStates(this.#keys.subarray(0, this.count * 2))
    const unexpected: number[] = []
    this.#isClassified = true
    for (let index = 0; index < this.count; index++) {
      const answer = answers[index]
      if (answer === 'wait' || (answer === undefined && this.#strategy.forgetsRecords)) this.#close(index)
      else if (answer === 'other' || (answer && !this.#decide(index, answer))) unexpected.push(index)
    }
    return unexpected
  }

  /** @returns false if the inode is neither as its recorded change left it, nor restored */
  #decide(index: number, { before, after }: RecordedInodeStates): boolean {
    const { forgetsRecords } = this.#strategy
    const current = this.#columns.getSeen(index)
    if (!isSameOwnership(after, current) && !(forgetsRecords && isSameOwnership(before, current))) return false
    if (!forgetsRecords) return true
    if (!this.#columns.isDirectoryAt(index) && (before.mode & SET_ID_MODE_BITS) !== 0) return false
    this.#columns.setTarget(index, before.gid, before.mode)
    return true
  }

  #close(index: number): void {
    const handle = this.#columns.getHandle(index)
    this.#columns.dropHandle(index)
    if (handle !== undefined) this.#inodes.close(handle)
  }

  /** Inspects an inode fully. @returns the inode, which the caller now owns, and its record */
  inspect(index: number): { inode: OpenInode; record: InodeRecord | undefined } {
    const handle = this.#columns.getHandle(index) as Handle
    const inspectedAtMs = Date.now()
    const stat = this.#inodes.stat(handle)
    const attributes = this.#inodes.attributeNames(handle, handle, SELF_ENTRY_NAME)
    const inode = inspectInode(this.#inodes, handle, stat, inspectedAtMs, attributes)
    const record = this.#findRecord(index)
    this.#columns.dropHandle(index)
    return { inode, record: record && this.#ledger.decode(record, record.settled) }
  }

  getPath(index: number): Uint8Array {
    return this.#columns.getPath(index)
  }

  #findRecord(index: number): ReturnType<WalkLedger['find']> {
    const key = new BigInt64Array(2)
    this.#columns.putKey(key, 0, index)
    return this.#ledger.find(key)
  }

  /** Returns the encoded records that the journal needs. */
  records(): Uint8Array {
    if (!this.#isClassified) return this.#columns.records(undefined)
    return this.#columns.records(this.#listOpen().filter((index) => this.#needsRecord(index)))
  }

  /** A restore by one call needs no new record: the old one, with the mark of the restore, describes both states. */
  #needsRecord(index: number): boolean {
    return !this.#strategy.forgetsRecords || this.#columns.needsTwoCalls(index)
  }

  #listOpen(): number[] {
    const open: number[] = []
    for (let index = 0; index < this.count; index++) if (this.#columns.getHandle(index) !== undefined) open.push(index)
    return open
  }

  /** Starts the changes. Their records must be on disk. */
  start(): void {
    const columns = this.#columns
    this.#isStarted = true
    for (let index = 0; index < this.count; index++) {
      const handle = columns.getHandle(index)
      if (handle === undefined) continue
      columns.putChange(index, handle, this.#fileChange)
      if (this.#changes === undefined || !canDelegateFileChange(this.#fileChange, columns.getInspectedAtMs(index)))
        this.#local.push(index)
      else {
        this.#changes.set(this.#delegated.length, this.#fileChange)
        this.#delegated.push(index)
      }
    }
    this.#changes?.start(this.#delegated.length)
  }

  /** Returns the positions of delegated changes that were not made. Usually there are none, and no outcome is read. */
  #listUnmade(): number[] {
    const changes = this.#changes
    if (changes === undefined || changes.finish() === 0) return []
    return [...this.#delegated.keys()].filter((position) => changes.outcome(position) !== 'made')
  }

  /** Finishes all changes, and closes the inodes. */
  finishChanges(report: WalkReport): PlainInodeResult {
    const unmade = new Set(this.#listUnmade())
    report.changed += this.#delegated.length - unmade.size
    const made = this.#strategy.forgetsRecords ? this.#delegated.filter((_, position) => !unmade.has(position)) : []
    const refused: InodeRecord[] = []
    const note = (index: number, change: () => InodeChangeOutcome) => {
      const outcome = skipDeletedInode(report, () => this.#columns.getPath(index), change)
      if (outcome === 'untouched' || (outcome === 'made' && this.#strategy.forgetsRecords)) made.push(index)
      else if (outcome === 'refused') refused.push(this.#getRecord(index))
    }
    for (const at of unmade) note(this.#delegated[at] as number, () => this.#finishDelegated(at, report))
    for (const index of this.#local) note(index, () => this.#changeLocally(index, report))
    const forgotten = new BigInt64Array(made.length * 2)
    for (let at = 0; at < made.length; at++) this.#columns.putKey(forgotten, at, made[at] as number)
    this.close()
    return { forgotten, refused }
  }

  /** Handles a change that another thread did not make. */
  #finishDelegated(position: number, report: WalkReport): InodeChangeOutcome {
    const index = this.#delegated[position] as number
    if (this.#changes?.outcome(position) === 'odd') return this.#changeUnexpected(index, report)
    if (!this.#finishChmod(index)) {
      recordSkippedInode(report, 'changed during the walk', this.#columns.getPath(index))
      return 'overtaken'
    }
    report.changed++
    return 'made'
  }

  /** Time has passed since the inspection: a chmod could undo a user's change, or raise the mask of an ACL. */
  #finishChmod(index: number): boolean {
    const handle = this.#columns.getHandle(index) as Handle
    const after = this.#columns.getTarget(index)
    const asChowned = { gid: after.gid, mode: this.#columns.getSeen(index).mode }
    if (!isSameOwnership(extractOwnership(this.#inodes.ownership(handle)), asChowned)) return false
    if (readAcl(this.#inodes, handle) !== undefined) return false
    this.#inodes.chmod(handle, after.mode)
    return true
  }

  #changeLocally(index: number, report: WalkReport): InodeChangeOutcome {
    const handle = this.#columns.getHandle(index) as Handle
    const inode = this.#columns.getInode(index, handle)
    const outcome = changePlainInode(this.#inodes, inode, this.#columns.getTarget(index))
    if (outcome === undefined) return this.#changeUnexpected(index, report)
    report[outcome === 'changed' ? 'changed' : 'alreadyRight']++
    return 'made'
  }

  /** Inspects the inode again, and decides by its present state. */
  #changeUnexpected(index: number, report: WalkReport): InodeChangeOutcome {
    const handle = this.#columns.getHandle(index) as Handle
    const stat = this.#inodes.stat(handle)
    const inode = { handle, inspectedAtMs: 0, stat, capability: undefined, acl: undefined }
    return applyInodeChange(this.#inodes, { inode, record: this.#getRecord(index) }, report)
  }

  #getRecord(index: number): InodeRecord {
    const record = this.#columns.getRecord(index, this.#isClassified ? this.#findRecord(index) : undefined)
    return this.#ledger.decode(record, false)
  }

  /** Closes the inodes that were not changed. */
  close(): void {
    // Other threads use their handles until then.
    const unmade = this.#listUnmade().map((position) => this.#delegated[position] as number)
    const open = this.#isStarted ? [...this.#local, ...unmade] : this.#listOpen()
    this.#inodes.closeAll(open.map((index) => this.#columns.getHandle(index) as Handle))
    this.#columns.count = 0
    this.#isClassified = false
    this.#isStarted = false
    this.#delegated = []
    this.#local = []
  }

  [Symbol.dispose](): void {
    this.close()
    this.#changes?.[Symbol.dispose]()
  }
}
