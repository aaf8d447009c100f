import { type Handle, type Inodes, isDirectory, type Name, type Stat } from '../../host/host.ts'
import { look } from '../inode/attributes.ts'
import { ignoreVanished, pathBelow, SELF } from './entry.ts'
import type { OpenFrame } from './frames.ts'
import { linkName } from './hard-links.ts'
import type { Ledger } from './ledger.ts'
import { type BatchSettings, Pipeline } from './pipeline.ts'
import { type LeftReason, leave, newReport, type WalkReport } from './report.ts'
import { type Task, type TaskSpec, taskOf } from './tasks.ts'
import { type Boundary, isElsewhere, type OtherWorkers, openWithRoom, type Visitor } from './traverse.ts'

const NONE = new Uint8Array()

export interface WalkSettings extends BatchSettings {
  inside: Boundary
  /** What would be changed is told by a look at the name alone. */
  byName?: boolean
  /** Stops after so many inodes: the rest is to be handed on. */
  stopAfter?: number
  others?: OtherWorkers | undefined
}

/** One thread's walk: looks at inodes, and opens those that need more than a look. */
export class Walk implements Visitor, Disposable {
  readonly report: WalkReport = newReport()
  readonly others: OtherWorkers | undefined
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #pipeline: Pipeline
  readonly #settings: WalkSettings
  /** Where one inode needs a look the next one mostly does too: it is then opened at once, not looked up twice. */
  #expectsMore = false

  constructor(inodes: Inodes, spec: TaskSpec, ledger: Ledger, settings: WalkSettings) {
    this.#inodes = inodes
    this.#task = taskOf(spec)
    this.#pipeline = new Pipeline(inodes, this.#task, ledger, this.report, settings)
    this.#settings = settings
    this.others = settings.others
  }

  entry(parent: OpenFrame, name: Name): boolean {
    if (!this.#expectsMore) {
      const stat = ignoreVanished(() => this.#inodes.statEntry(parent.handle, name))
      if (stat === undefined) return this.#isGone(parent.path, name)
      if (isDirectory(stat)) return true
      if (!this.#needsLook(stat, parent.path, name)) return false
      if (this.#settings.byName && stat.links === 1) {
        this.#pipeline.count(stat, pathBelow(parent.path, name))
        return false
      }
    }
    const handle = this.#open(parent.handle, name)
    if (handle === undefined) return this.#isGone(parent.path, name)
    const stat = this.#inodes.stat(handle)
    const enters = isDirectory(stat)
    const isTaken = !enters && this.#needsLook(stat, parent.path, name)
    this.#expectsMore = isTaken && !this.#settings.byName
    if (isTaken) {
      const inode = look(this.#inodes, handle, stat, parent.handle, name)
      this.#pipeline.take(inode, pathBelow(parent.path, name), stat.links > 1 ? linkName(parent, name) : undefined)
    } else this.#inodes.close(handle)
    return enters
  }

  #isGone(above: Uint8Array, name: Name): false {
    this.left('gone or replaced during the walk', pathBelow(above, name))
    return false
  }

  directory(directory: Handle, path: Uint8Array): void {
    if (!this.#needsLook(this.#inodes.stat(directory), path, NONE)) return
    const handle = this.#open(directory, SELF)
    // A directory that was removed has no "." any more.
    if (handle === undefined) this.#isGone(path, NONE)
    else this.#pipeline.take(look(this.#inodes, handle, this.#inodes.stat(handle), directory, SELF), path)
  }

  #open(parent: Handle, name: Name): Handle | undefined {
    try {
      return this.#inodes.openEntry(parent, name)
    } catch {
      return openWithRoom(this, () => ignoreVanished(() => this.#inodes.openEntry(parent, name)))
    }
  }

  left(reason: LeftReason, path: Uint8Array): void {
    leave(this.report, reason, path)
  }

  stops(): boolean {
    const isTime = this.report.visited >= (this.#settings.stopAfter ?? Number.POSITIVE_INFINITY)
    // While the directories on the way are the walk's: where it fails, they are closed with it.
    if (isTime) this.makeRoom()
    return isTime
  }

  /** Whether the inode is to be opened and decided on; reports it if not. */
  #needsLook(stat: Stat, above: Uint8Array, name: Name): boolean {
    if (isElsewhere(stat, this.#settings.inside)) {
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
    return this.#pipeline.flush()
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  [Symbol.dispose](): void {
    this.#pipeline.close()
  }
}
