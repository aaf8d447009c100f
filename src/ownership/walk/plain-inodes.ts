import type { Changes, FileChange, Handle, Inodes, Look } from '../../host/host.ts'
import { aclOf, look, type OpenInode } from '../inode/attributes.ts'
import { ownershipOf, SET_IDS, same } from '../inode/policy.ts'
import type { InodeRecord } from '../inode/record.ts'
import type { States } from '../journal/state-table.ts'
import { canBeGiven, changePlain, makeChange } from './change.ts'
import { SELF } from './entry.ts'
import type { Ledger } from './ledger.ts'
import { PlainColumns } from './plain-columns.ts'
import { leave, type WalkReport } from './report.ts'
import type { Task } from './tasks.ts'

type Outcome = ReturnType<typeof makeChange>

/** What is left to write down of changes that were made, or not. */
export interface Made {
  /** Nothing is left to put back: inode and birth time of each in turn. */
  forgotten: BigInt64Array
  refused: InodeRecord[]
}

/** Inodes held open that have one name, and neither set-id bits nor a capability nor an ACL: most of a volume. */
export class PlainInodes implements Disposable {
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #columns: PlainColumns
  readonly #ledger: Ledger
  /** Inode and birth time of each in turn, to ask the journal. */
  readonly #keys: BigInt64Array
  /** The journal was asked what it holds of each. */
  #isJudged = false
  readonly #changes: Changes | undefined
  /** The same object again and again: an inode is to leave nothing to collect. */
  readonly #order: FileChange
  /** Which of them other threads change, in their order, and which are changed here. */
  #given: number[] = []
  #kept: number[] = []
  #isStarted = false

  /** @param size how many there may be */
  constructor(inodes: Inodes, size: number, task: Task, ledger: Ledger) {
    this.#inodes = inodes
    this.#task = task
    this.#ledger = ledger
    this.#columns = new PlainColumns(size)
    this.#keys = new BigInt64Array(size * 2)
    this.#changes = inodes.changes(size)
    this.#order = {
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
   * @param at when it was looked at, milliseconds; `above` and `name`: its path
   * @returns false where it is not taken, and still the caller's
   */
  add(handle: Handle, seen: Look, at: number, above: Uint8Array, name: Uint8Array): boolean {
    return this.#columns.add(handle, seen, at, above, name, this.#task.plain)
  }

  /**
   * Decides by what the journal holds of each, and lets go of those that stay as they are.
   * @returns which need a closer look
   */
  judge(): number[] {
    for (let index = 0; index < this.count; index++) this.#columns.putKey(this.#keys, index, index)
    const answers = this.#ledger.statesOf(this.#keys.subarray(0, this.count * 2))
    const odd: number[] = []
    this.#isJudged = true
    for (let index = 0; index < this.count; index++) {
      const answer = answers[index]
      if (answer === 'wait' || (answer === undefined && this.#task.forgets)) this.#letGo(index)
      else if (answer === 'other' || (answer && !this.#decide(index, answer))) odd.push(index)
    }
    return odd
  }

  /** @returns false where the inode is not just what its record's change has made of it, or as it was put back */
  #decide(index: number, { before, after }: States): boolean {
    const owned = this.#columns.seenOf(index)
    if (!same(after, owned) && !(this.#task.forgets && same(before, owned))) return false
    if (!this.#task.forgets) return true
    if (!this.#columns.isDirectoryAt(index) && (before.mode & SET_IDS) !== 0) return false
    this.#columns.aim(index, before.gid, before.mode)
    return true
  }

  #letGo(index: number): void {
    const handle = this.#columns.handleOf(index)
    this.#columns.dropHandle(index)
    if (handle !== undefined) this.#inodes.close(handle)
  }

  /** Looks at one as at any other inode. @returns it, the caller's now, and what the journal holds of it */
  lookCloser(index: number): { inode: OpenInode; record: InodeRecord | undefined } {
    const handle = this.#columns.handleOf(index) as Handle
    const at = Date.now()
    const stat = this.#inodes.stat(handle)
    const inode = look(this.#inodes, handle, stat, at, this.#inodes.attributeNames(handle, handle, SELF))
    const known = this.#known(index)
    this.#columns.dropHandle(index)
    return { inode, record: known && this.#ledger.decode(known, known.settled) }
  }

  pathOf(index: number): Uint8Array {
    return this.#columns.pathOf(index)
  }

  #known(index: number): ReturnType<Ledger['find']> {
    const key = new BigInt64Array(2)
    this.#columns.putKey(key, 0, index)
    return this.#ledger.find(key)
  }

  /** The records of those that are left, as far as the journal needs them. */
  records(): Uint8Array {
    return this.#columns.records(this.#isJudged ? this.#held().filter((index) => this.#isRecorded(index)) : undefined)
  }

  /**
   * What is put back by one call is as its record says before that call and after it: that record is enough, together
   * with the journal's note that a restore has begun.
   */
  #isRecorded(index: number): boolean {
    return !this.#task.forgets || this.#columns.isTwofold(index)
  }

  #held(): number[] {
    const held: number[] = []
    for (let index = 0; index < this.count; index++) if (this.#columns.handleOf(index) !== undefined) held.push(index)
    return held
  }

  /** The changes may be made: their records are on disk. */
  start(): void {
    const columns = this.#columns
    this.#isStarted = true
    for (let index = 0; index < this.count; index++) {
      const handle = columns.handleOf(index)
      if (handle === undefined) continue
      columns.putChange(index, handle, this.#order)
      if (this.#changes === undefined || !canBeGiven(this.#order, columns.timeOf(index))) this.#kept.push(index)
      else {
        this.#changes.set(this.#given.length, this.#order)
        this.#given.push(index)
      }
    }
    this.#changes?.start(this.#given.length)
  }

  /** Which of those that were given are not made: mostly none, and nothing is asked of each. */
  #notMade(): number[] {
    const changes = this.#changes
    if (changes === undefined || changes.finish() === 0) return []
    return [...this.#given.keys()].filter((given) => changes.outcome(given) !== 'made')
  }

  /** Makes all changes, and lets go of all. */
  make(report: WalkReport): Made {
    const notMade = new Set(this.#notMade())
    report.changed += this.#given.length - notMade.size
    const made = this.#task.forgets ? this.#given.filter((_, given) => !notMade.has(given)) : []
    const refused: InodeRecord[] = []
    const note = (index: number, outcome: Outcome) => {
      if (outcome === 'untouched' || (outcome === 'made' && this.#task.forgets)) made.push(index)
      else if (outcome === 'refused') refused.push(this.#recordOf(index))
    }
    for (const given of notMade) note(this.#given[given] as number, this.#end(given, report))
    for (const index of this.#kept) note(index, this.#change(index, report))
    const forgotten = new BigInt64Array(made.length * 2)
    for (let at = 0; at < made.length; at++) this.#columns.putKey(forgotten, at, made[at] as number)
    this.close()
    return { forgotten, refused }
  }

  /** What has become of a change that was given to another thread, and not made there. */
  #end(given: number, report: WalkReport): Outcome {
    const index = this.#given[given] as number
    if (this.#changes?.outcome(given) === 'odd') return this.#changeOdd(index, report)
    if (!this.#complete(index)) {
      leave(report, 'changed during the walk', this.#columns.pathOf(index))
      return 'overtaken'
    }
    report.changed++
    return 'made'
  }

  /** Some time has passed: chmod would undo what its user did meanwhile, and on an ACL would raise the mask. */
  #complete(index: number): boolean {
    const handle = this.#columns.handleOf(index) as Handle
    const after = this.#columns.afterOf(index)
    const asChowned = { gid: after.gid, mode: this.#columns.seenOf(index).mode }
    if (!same(ownershipOf(this.#inodes.ownership(handle)), asChowned)) return false
    if (aclOf(this.#inodes, handle) !== undefined) return false
    this.#inodes.chmod(handle, after.mode)
    return true
  }

  #change(index: number, report: WalkReport): Outcome {
    const handle = this.#columns.handleOf(index) as Handle
    const outcome = changePlain(this.#inodes, this.#columns.inodeOf(index, handle), this.#columns.afterOf(index))
    if (outcome === undefined) return this.#changeOdd(index, report)
    report[outcome === 'changed' ? 'changed' : 'alreadyRight']++
    return 'made'
  }

  /** Whatever it is now is judged as what was looked at just now. */
  #changeOdd(index: number, report: WalkReport): Outcome {
    const handle = this.#columns.handleOf(index) as Handle
    const found = { stat: this.#inodes.stat(handle), capability: undefined, acl: undefined }
    return makeChange(this.#inodes, { inode: { handle, at: 0, ...found }, record: this.#recordOf(index) }, report)
  }

  #recordOf(index: number): InodeRecord {
    const record = this.#columns.recordOf(index, this.#isJudged ? this.#known(index) : undefined)
    return this.#ledger.decode(record, false)
  }

  /** Lets go of what was not changed. */
  close(): void {
    // Their handles are in use until then.
    const notMade = this.#notMade()
    const held = this.#isStarted
      ? [...this.#kept, ...notMade.map((given) => this.#given[given] as number)]
      : this.#held()
    this.#inodes.closeAll(held.map((index) => this.#columns.handleOf(index) as Handle))
    this.#columns.count = 0
    this.#isJudged = false
    this.#isStarted = false
    this.#given = []
    this.#kept = []
  }

  [Symbol.dispose](): void {
    this.close()
    this.#changes?.[Symbol.dispose]()
  }
}
