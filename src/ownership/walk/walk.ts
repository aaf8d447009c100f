import { type Handle, type Inodes, isDirectory, type Name, type Stat } from '../../host/host.ts'
import { look } from '../inode/open-inode.ts'
import { ignoreVanished, pathBelow, SELF } from './entry.ts'
import { linkName } from './hard-links.ts'
import type { Ledger } from './ledger.ts'
import { type OwnSpec, ownTask } from './own-task.ts'
import { type BatchSettings, Pipeline } from './pipeline.ts'
import { type LeftReason, leave, newReport, type WalkReport } from './report.ts'
import { restoreTask } from './restore-task.ts'
import type { Task } from './task.ts'
import {
  type Boundary,
  isElsewhere,
  type OpenDirectory,
  type OtherWorkers,
  openWithRoom,
  type Visitor,
} from './traverse.ts'

const NONE = new Uint8Array()

/** A task as it can be sent to another thread. */
export type TaskSpec = { do: 'restore'; isForced: boolean } | ({ do: 'own' } & OwnSpec)

export interface WalkSettings extends BatchSettings {
  inside: Boundary
  /** Stops after so many inodes: the rest is to be handed on. */
  stopAfter?: number
  others?: OtherWorkers | undefined
}

/** One thread's walk: looks at inodes, and opens those that need more than a look. */
export class Walk implements Visitor {
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
    this.#task = spec.do === 'own' ? ownTask(spec) : restoreTask(spec.isForced)
    this.#pipeline = new Pipeline(inodes, this.#task, ledger, this.report, settings)
    this.#settings = settings
    this.others = settings.others
  }

  entry(parent: OpenDirectory, name: Name): boolean {
    if (!this.#expectsMore) {
      const stat = ignoreVanished(() => this.#inodes.statEntry(parent.handle, name))
      if (stat === undefined) {
        this.left('gone or replaced during the walk', pathBelow(parent.path, name))
        return false
      }
      if (isDirectory(stat)) return true
      if (!this.#needsLook(stat, parent.path, name)) return false
    }
    const handle = this.#open(parent.handle, name)
    if (handle === undefined) {
      this.left('gone or replaced during the walk', pathBelow(parent.path, name))
      return false
    }
    const stat = this.#inodes.stat(handle)
    const enters = isDirectory(stat)
    this.#expectsMore = !enters && this.#needsLook(stat, parent.path, name)
    if (this.#expectsMore) {
      const link = stat.links > 1 ? { name: linkName(parent, name), at: Date.now() } : undefined
      this.#pipeline.take(look(this.#inodes, handle, stat, parent.handle, name), pathBelow(parent.path, name), link)
    } else this.#inodes.close(handle)
    return enters
  }

  directory(directory: Handle, path: Uint8Array): void {
    if (!this.#needsLook(this.#inodes.stat(directory), path, NONE)) return
    const handle = this.#open(directory, SELF)
    // A directory that was removed has no "." any more.
    if (handle === undefined) {
      this.left('gone or replaced during the walk', path)
      return
    }
    this.#pipeline.take(look(this.#inodes, handle, this.#inodes.stat(handle), directory, SELF), path)
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
    return this.report.visited >= (this.#settings.stopAfter ?? Number.POSITIVE_INFINITY)
  }

  makeRoom(): boolean {
    const any = !this.#pipeline.isEmpty()
    this.flush()
    return any
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

  /** Records and makes all there is to change. */
  flush(): void {
    this.#pipeline.flush()
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    this.#pipeline.close()
  }
}
