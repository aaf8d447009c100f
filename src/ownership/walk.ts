import type { Handle, Inodes, Name, Stat } from '../host/host.ts'
import type { PackedFrames } from './frames.ts'
import { type Held, hold } from './held.ts'
import type { Answer, Ledger, Sighting } from './ledger.ts'
import { type Change, makeChanges } from './make.ts'
import { pathBelow } from './path.ts'
import type { InodeRecord } from './record.ts'
import { type LeftReason, leave, newReport, type WalkReport } from './report.ts'
import type { Task } from './task.ts'
import { type Boundary, gone, isDirectory, isElsewhere, SELF, type Visitor, withRoom } from './traverse.ts'

/** One commit to disk for so many inodes; twice as many handles may be held, while one batch is on its way to disk. */
export const BATCH_SIZE = 1000

const NONE = new Uint8Array()

interface Candidate {
  held: Held
  path: Uint8Array
}

export interface WalkSettings {
  inside: Boundary
  /** Stops after so many inodes: the rest is to be handed on. */
  stopAfter?: number
  /** Other threads that may be in want of work. */
  others?: Others
  /** Called after every batch. */
  onBatch?: () => void
}

export interface Others {
  wantWork(): boolean
  take(part: PackedFrames): void
}

interface Recorded {
  batch: number
  changes: Change[]
}

/**
 * One thread's walk. Inodes that need a look are held and collected; a full batch is decided on and recorded, and while
 * its records are on their way to disk the next is collected; then its changes are made.
 */
export class Walk implements Visitor {
  readonly report: WalkReport = newReport()
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #ledger: Ledger
  readonly #settings: WalkSettings
  #candidates: Candidate[] = []
  #recorded: Recorded | undefined
  /** Where one inode needs a look the next one mostly does too: it is then opened at once, not looked up twice. */
  #expectsMore = false

  constructor(inodes: Inodes, task: Task, ledger: Ledger, settings: WalkSettings) {
    this.#inodes = inodes
    this.#task = task
    this.#ledger = ledger
    this.#settings = settings
  }

  entry(parent: Handle, name: Name, above: Uint8Array): boolean {
    if (!this.#expectsMore) {
      const stat = gone(() => this.#inodes.statEntry(parent, name))
      if (stat === undefined) {
        this.left('gone or replaced during the walk', pathBelow(above, name))
        return false
      }
      if (isDirectory(stat)) return true
      if (!this.#glance(stat, above, name)) return false
    }
    const handle = this.#hold(parent, name)
    if (handle === undefined) {
      this.left('gone or replaced during the walk', pathBelow(above, name))
      return false
    }
    const stat = this.#inodes.stat(handle)
    const enters = isDirectory(stat)
    this.#expectsMore = !enters && this.#glance(stat, above, name)
    if (this.#expectsMore) this.#collect(hold(this.#inodes, handle, stat, parent, name), pathBelow(above, name))
    else this.#inodes.close(handle)
    return enters
  }

  directory(directory: Handle, path: Uint8Array): void {
    if (!this.#glance(this.#inodes.stat(directory), path, NONE)) return
    const handle = this.#hold(directory, SELF)
    // A directory that was removed has no "." any more.
    if (handle === undefined) return this.left('gone or replaced during the walk', path)
    this.#collect(hold(this.#inodes, handle, this.#inodes.stat(handle), directory, SELF), path)
  }

  #hold(parent: Handle, name: Name): Handle | undefined {
    try {
      return this.#inodes.openEntry(parent, name)
    } catch {
      return withRoom(this, () => gone(() => this.#inodes.openEntry(parent, name)))
    }
  }

  left(reason: LeftReason, path: Uint8Array): void {
    leave(this.report, reason, path)
  }

  stops(): boolean {
    return this.report.visited >= (this.#settings.stopAfter ?? Number.POSITIVE_INFINITY)
  }

  shares(): boolean {
    return this.#settings.others?.wantWork() ?? false
  }

  share(part: PackedFrames): void {
    this.#settings.others?.take(part)
  }

  relieve(): boolean {
    const any = this.#candidates.length > 0 || this.#recorded !== undefined
    this.flush()
    return any
  }

  /** Whether the inode needs a look; counts it if not. */
  #glance(stat: Stat, above: Uint8Array, name: Name): boolean {
    if (isElsewhere(stat, this.#settings.inside)) {
      this.left('sub-mount', pathBelow(above, name))
      return false
    }
    const seen = this.#task.glance(stat)
    if (seen === 'look') return true
    this.report.visited++
    if (seen === 'right') this.report.alreadyRight++
    else if (seen !== 'passed') this.left(seen.leave, pathBelow(above, name))
    return false
  }

  #collect(held: Held, path: Uint8Array): void {
    this.report.visited++
    this.#candidates.push({ held, path })
    if (this.#candidates.length >= BATCH_SIZE) this.#turn()
  }

  /** Records what was collected, and makes the changes that were recorded before. */
  #turn(): void {
    const previous = this.#recorded
    this.#recorded = this.#decide()
    if (previous) this.#make(previous)
    this.#settings.onBatch?.()
  }

  #decide(): Recorded | undefined {
    const candidates = this.#candidates
    this.#candidates = []
    const answers = this.#answers(candidates)
    const changes: Change[] = []
    const records: InodeRecord[] = []
    for (const [index, { held, path }] of candidates.entries()) {
      const answer = answers?.[index]
      const { change, settle, leave: reason } = answer === 'wait' ? {} : this.#task.decide(held, path, answer)
      if (reason) this.left(reason, path)
      if (settle) records.push(settle)
      if (change === undefined) {
        this.#inodes.close(held.handle)
        continue
      }
      if (change.forfeited && !(typeof answer === 'object' && answer.forfeited))
        this.left('privileges not given back', path)
      changes.push({ held, record: change })
      records.push(change)
    }
    return records.length === 0 ? undefined : { changes, batch: this.#ledger.record(records) }
  }

  /** Undefined: nothing had to be asked. */
  #answers(candidates: readonly Candidate[]) {
    const asked: Sighting[] = []
    const places: number[] = []
    for (const [index, { held, path }] of candidates.entries()) {
      const { stat } = held
      const links = isDirectory(stat) ? 1 : stat.links
      if (links <= 1 && !this.#task.asksFor(stat)) continue
      asked.push({ inode: stat.inode, born: stat.born, links, changed: stat.changed, path })
      places.push(index)
    }
    if (asked.length === 0) return undefined
    const answers = this.#ledger.ask(asked)
    const byPlace: Answer[] = []
    for (const [index, place] of places.entries()) byPlace[place] = answers[index]
    return byPlace
  }

  #make({ batch, changes }: Recorded): void {
    this.#ledger.awaitDurable(batch)
    try {
      const { made, failed } = makeChanges(this.#inodes, changes, this.report)
      this.#ledger.settle(batch)
      if (this.#task.forgets && made.length > 0) this.#ledger.forget(made)
      // Recorded as what they still are, so that the next walk or restore tries them again.
      if (failed.length > 0) this.#ledger.settle(this.#ledger.record(failed.map((r) => ({ ...r, after: r.seen }))))
    } finally {
      for (const { held } of changes) this.#inodes.close(held.handle)
    }
  }

  /** Records and makes all there is. */
  flush(): void {
    while (this.#candidates.length > 0 || this.#recorded) this.#turn()
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const { held } of [...this.#candidates, ...(this.#recorded?.changes ?? [])]) this.#inodes.close(held.handle)
    this.#candidates = []
    this.#recorded = undefined
  }
}
