import { type Dirents, TYPE_DIRECTORY } from '../../host/dirents.ts'
import {
  type Handle,
  type Inodes,
  isDirectory,
  type Look,
  type Name,
  orClosed,
  type Sights,
  type Stat,
} from '../../host/host.ts'
import { hasMore, look, type OpenInode } from '../inode/attributes.ts'
import type { BatchSettings } from './batch.ts'
import { ignoreVanished, pathBelow, SELF } from './entry.ts'
import { EntryRun } from './entry-run.ts'
import type { OpenFrame } from './frames.ts'
import type { Ledger } from './ledger.ts'
import { nameNumber } from './name-set.ts'
import { Pipeline } from './pipeline.ts'
import { type LeftReason, leave, newReport, type WalkReport } from './report.ts'
import { type Task, type TaskSpec, taskOf } from './tasks.ts'
import { type Boundary, isElsewhere, openWithRoom, type Visitor } from './traverse.ts'

const NONE = new Uint8Array()
const GONE = 'gone or replaced during the walk'
const DIRECTORY_GONE = 'directory gone or replaced during the walk'

export interface WalkSettings extends BatchSettings {
  inside: Boundary
  /** What would be changed is told by a look at the name alone. */
  byName?: boolean
}

/** A walk: looks at inodes, and opens those that need more than a look. */
export class Walk implements Visitor, Disposable {
  readonly report: WalkReport = newReport()
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #pipeline: Pipeline
  /** For directories: those of a restore are all there is to record, and one commit is enough for many. */
  readonly #directories: Pipeline
  readonly #settings: WalkSettings
  /** In turn: the one is looked at while the other is dealt with. */
  readonly #runs: readonly [EntryRun, EntryRun]
  /** Where one inode needs a look the next ones mostly do too: they are then opened at once, not looked up twice. */
  #expectsMore = false
  #taken = 0

  constructor(inodes: Inodes, spec: TaskSpec, ledger: Ledger, settings: WalkSettings) {
    this.#inodes = inodes
    this.#task = taskOf(spec)
    const pipeline = () => new Pipeline(inodes, this.#task, ledger, this.report, settings)
    this.#pipeline = pipeline()
    this.#directories = this.#task.forgets ? pipeline() : this.#pipeline
    this.#settings = settings
    const [first, second] = inodes.sights()
    const run = (sights: Sights) => new EntryRun(inodes, sights, settings.batchSize)
    this.#runs = [run(first), run(second)]
  }

  entries(frame: OpenFrame, block: Dirents): boolean {
    let [run, next] = this.#runs
    using _run: EntryRun = run
    using _next: EntryRun = next
    run.begin(frame.handle, block, this.#expectsMore, false)
    while (run.count > 0) {
      next.begin(frame.handle, block, this.#expectsMore, true)
      const at = this.#seeAll(frame, run)
      this.#settings.onStep?.()
      if (at < run.count) {
        block.goTo(run.placeOf(at))
        return true
      }
      ;[run, next] = [next, run]
    }
    return block.next() && (block.type === TYPE_DIRECTORY || this.#entry(frame, block.name, block.isFile))
  }

  /** @returns the first that is a directory, or how many there are */
  #seeAll(frame: OpenFrame, run: EntryRun): number {
    const taken = this.#taken
    run.finish()
    let at = 0
    while (at < run.count && !(run.isHeld ? this.#held(frame, run, at) : this.#glanced(frame, run, at))) at++
    this.#expectsMore = (this.#taken - taken) * 2 > run.count && !this.#settings.byName
    return at
  }

  /** @returns whether it is a directory */
  #glanced(frame: OpenFrame, run: EntryRun, at: number): boolean {
    const name = run.nameOf(at)
    const seen = run.stat(at)
    return seen ? this.#seen(frame, name, seen) : this.#entry(frame, name)
  }

  /** The same of one that is open. */
  #held(frame: OpenFrame, run: EntryRun, at: number): boolean {
    const name = run.nameOf(at)
    const handle = run.takeHandle(at)
    if (handle === undefined) return this.#entry(frame, name)
    const seen = run.stat(at)
    if (seen && !isDirectory(seen) && this.#needsLook(seen, frame.path, name)) {
      const attributes = run.attributeNames(at) ?? this.#attributeNames(handle, frame.handle, name)
      this.#takeEntry(frame, name, handle, seen, run.time, attributes)
      return false
    }
    this.#inodes.close(handle)
    return seen ? isDirectory(seen) : this.#entry(frame, name)
  }

  /** @param isFile it was no directory when it was listed @returns whether it is a directory */
  #entry(frame: OpenFrame, name: Name, isFile = true): boolean {
    const seen = ignoreVanished(() => this.#inodes.lookEntry(frame.handle, name))
    if (seen) return this.#seen(frame, name, seen)
    return this.#isGone(frame.path, name, isFile ? GONE : DIRECTORY_GONE)
  }

  #seen(frame: OpenFrame, name: Name, seen: Look): boolean {
    if (isDirectory(seen)) return true
    if (!this.#needsLook(seen, frame.path, name)) return false
    if (this.#settings.byName && seen.links === 1) {
      this.#pipeline.count(seen, pathBelow(frame.path, name))
      return false
    }
    const time = Date.now()
    const handle = this.#open(frame.handle, name)
    if (handle === undefined) return this.#isGone(frame.path, name)
    const held = orClosed(this.#inodes, handle, this.#inodes.look)
    const enters = isDirectory(held)
    if (!enters && this.#needsLook(held, frame.path, name)) {
      this.#takeEntry(frame, name, handle, held, time, this.#attributeNames(handle, frame.handle, name))
    } else this.#inodes.close(handle)
    return enters
  }

  #takeEntry(frame: OpenFrame, name: Name, handle: Handle, seen: Look, time: number, attributes: string): void {
    this.#taken++
    if (seen.links === 1) this.#take(handle, seen, time, attributes, frame.path, name)
    else {
      const inode = this.#examine(handle, seen, time, attributes)
      this.#pipeline.take(inode, pathBelow(frame.path, name), nameNumber(frame, name))
    }
  }

  #take(handle: Handle, seen: Look, time: number, attributes: string, above: Uint8Array, name: Uint8Array): void {
    const pipeline = isDirectory(seen) ? this.#directories : this.#pipeline
    if (!hasMore(attributes) && pipeline.takePlain(handle, seen, time, above, name)) return
    pipeline.take(this.#examine(handle, seen, time, attributes), pathBelow(above, name))
  }

  #attributeNames(handle: Handle, parent: Handle, name: Name): string {
    return orClosed(this.#inodes, handle, () => this.#inodes.attributeNames(handle, parent, name))
  }

  #examine(handle: Handle, seen: Look, time: number, attributes: string): OpenInode {
    return orClosed(this.#inodes, handle, () => look(this.#inodes, handle, seen.keep(), time, attributes))
  }

  #isGone(above: Uint8Array, name: Name, reason: LeftReason = GONE): false {
    this.left(reason, pathBelow(above, name))
    return false
  }

  directory(directory: Handle, path: Uint8Array): void {
    if (!this.#needsLook(this.#inodes.look(directory), path, NONE)) return
    const at = Date.now()
    const handle = this.#open(directory, SELF)
    // A directory that was removed has no "." any more.
    if (handle === undefined) this.#isGone(path, NONE)
    else {
      const seen = orClosed(this.#inodes, handle, this.#inodes.look)
      this.#take(handle, seen, at, this.#attributeNames(handle, directory, SELF), path, NONE)
    }
  }

  #open(parent: Handle, name: Name): Handle | undefined {
    try {
      return this.#inodes.openEntry(parent, name)
    } catch {
      return openWithRoom(this, () => ignoreVanished(() => this.#inodes.openEntry(parent, name)))
    }
  }

  left(reason: LeftReason, path: Uint8Array | undefined): void {
    leave(this.report, reason, path)
  }

  skippedBoundary(stat: Stat): void {
    this.#settings.observer?.skippedBoundary?.(stat)
  }

  /** Whether the inode is to be opened and decided on; reports it if not. */
  #needsLook(stat: Stat, above: Uint8Array, name: Name): boolean {
    if (isElsewhere(stat, this.#settings.inside)) {
      this.skippedBoundary(stat)
      this.left('sub-mount', pathBelow(above, name))
      return false
    }
    const seen = this.#task.glance(stat)
    if (seen === 'look') return true
    this.report.visited++
    this.#settings.observer?.visited(stat)
    if (seen === 'right') this.report.alreadyRight++
    else if (seen !== 'passed') this.left(seen.leave, pathBelow(above, name))
    return false
  }

  /** Records and makes all there is to change, and lets go of it. */
  makeRoom(): boolean {
    // The root is changed last.
    const any = this.#pipeline.flush()
    return this.#directories.flush() || any
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  [Symbol.dispose](): void {
    this.#pipeline.close()
    this.#directories.close()
  }
}
