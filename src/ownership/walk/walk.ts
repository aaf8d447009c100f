import { DIRENT_TYPE_DIRECTORY, type DirentIterator } from '../../kernel/dirents.ts'
import {
  type EntryName,
  type Handle,
  type Inodes,
  isDirectory,
  type Stat,
  type StatView,
  useHandleOrClose,
} from '../../kernel/host.ts'
import { hasAclOrCapability, inspectInode, type OpenInode } from '../inode/attributes.ts'
import { ignoreDeletedInode } from './deleted-inode.ts'
import type { OpenDirectoryFrame } from './directory-stack.ts'
import { DirectoryEntryRun, hashEntryName, ignoreVanishedEntry, joinEntryPath, SELF_ENTRY_NAME } from './entry.ts'
import type { WalkBatchSettings, WalkLedger } from './ledger.ts'
import { InodeChangePipeline } from './pipeline.ts'
import { createWalkReport, recordSkippedInode, type SkipReason, type WalkReport } from './report.ts'
import { createWalkStrategy, type WalkStrategy, type WalkStrategySpec } from './strategies.ts'
import {
  DIRECTORY_REPLACED_REASON,
  isInodeOutsideBoundary,
  openAfterReleasingHandles,
  type TreeVisitor,
  type WalkBoundary,
} from './traverse.ts'

const EMPTY_PATH = new Uint8Array()
const ENTRY_REPLACED_REASON = 'gone or replaced during the walk'

export interface WalkSettings extends WalkBatchSettings {
  boundary: WalkBoundary
  /** A survey that stats names and opens nothing. */
  isStatOnly?: boolean
}

/** Visits the inodes of a tree, and opens those that may need a change. */
export class TreeWalk implements TreeVisitor, Disposable {
  readonly report: WalkReport = createWalkReport()
  readonly #inodes: Inodes
  readonly #strategy: WalkStrategy
  readonly #pipeline: InodeChangePipeline
  /** A restore needs few records but those of directories. In a pipeline of their own, one commit serves many. */
  readonly #directories: InodeChangePipeline
  readonly #settings: WalkSettings
  /** Used in turn: one is inspected while the other is dealt with. */
  readonly #runs: readonly [DirectoryEntryRun, DirectoryEntryRun]
  /** If an inode needs inspection, the next ones mostly do, too. They are opened at once, not looked up twice. */
  #opensAhead = false
  #takenCount = 0

  constructor(inodes: Inodes, spec: WalkStrategySpec, ledger: WalkLedger, settings: WalkSettings) {
    this.#inodes = inodes
    this.#strategy = createWalkStrategy(spec)
    const pipeline = () => new InodeChangePipeline(inodes, this.#strategy, ledger, this.report, settings)
    this.#pipeline = pipeline()
    this.#directories = this.#strategy.forgetsRecords ? pipeline() : this.#pipeline
    this.#settings = settings
    const runs = inodes.statBatches().map((batch) => new DirectoryEntryRun(inodes, batch, settings.batchSize))
    this.#runs = runs as [DirectoryEntryRun, DirectoryEntryRun]
  }

  visitEntries(frame: OpenDirectoryFrame, block: DirentIterator): boolean {
    let [run, next] = this.#runs
    using _run: DirectoryEntryRun = run
    using _next: DirectoryEntryRun = next
    run.start(frame.handle, block, this.#opensAhead, false)
    while (run.count > 0) {
      next.start(frame.handle, block, this.#opensAhead, true)
      const index = this.#visitRun(frame, run)
      this.#settings.onStep?.()
      if (index < run.count) {
        block.goTo(run.getPosition(index))
        return true
      }
      ;[run, next] = [next, run]
    }
    return block.next() && (block.type === DIRENT_TYPE_DIRECTORY || this.#visitEntry(frame, block.name, block.isFile))
  }

  /** @returns the index of the first directory, or the number of entries */
  #visitRun(frame: OpenDirectoryFrame, run: DirectoryEntryRun): number {
    const taken = this.#takenCount
    run.finish()
    let index = 0
    while (
      index < run.count &&
      !(run.opensEntries ? this.#visitOpened(frame, run, index) : this.#visitStatted(frame, run, index))
    )
      index++
    this.#opensAhead = (this.#takenCount - taken) * 2 > run.count && !this.#settings.isStatOnly
    return index
  }

  /** @returns whether it is a directory */
  #visitStatted(frame: OpenDirectoryFrame, run: DirectoryEntryRun, index: number): boolean {
    const name = run.getName(index)
    const seen = run.stat(index)
    return seen ? this.#visitSeen(frame, name, seen) : this.#visitEntry(frame, name)
  }

  /** Like `#visitStatted`, for an open entry. */
  #visitOpened(frame: OpenDirectoryFrame, run: DirectoryEntryRun, index: number): boolean {
    const [name, handle] = [run.getName(index), run.takeHandle(index)]
    if (handle === undefined) return this.#visitEntry(frame, name)
    const seen = run.stat(index)
    if (seen && !isDirectory(seen) && this.#needsInspection(seen, frame.path, name))
      return this.#takeNamed(frame, name, handle, seen, run.startedAtMs, run.attributeNames(index))
    this.#inodes.close(handle)
    return seen ? isDirectory(seen) : this.#visitEntry(frame, name)
  }

  /**
   * @param isFile it was listed as no directory
   * @returns whether it is a directory
   */
  #visitEntry(frame: OpenDirectoryFrame, name: EntryName, isFile = true): boolean {
    const seen = ignoreVanishedEntry(() => this.#inodes.viewEntry(frame.handle, name))
    if (seen) return this.#visitSeen(frame, name, seen)
    return this.#skipReplaced(frame.path, name, isFile ? ENTRY_REPLACED_REASON : DIRECTORY_REPLACED_REASON)
  }

  #visitSeen(frame: OpenDirectoryFrame, name: EntryName, seen: StatView): boolean {
    if (isDirectory(seen)) return true
    if (!this.#needsInspection(seen, frame.path, name)) return false
    if (this.#settings.isStatOnly && seen.links === 1) {
      this.#pipeline.countByStat(seen, joinEntryPath(frame.path, name))
      return false
    }
    const inspectedAtMs = Date.now()
    const handle = this.#openEntry(frame.handle, name)
    const opened = handle && ignoreVanishedEntry(() => useHandleOrClose(this.#inodes, handle, this.#inodes.look))
    if (handle === undefined || opened === undefined) return this.#skipReplaced(frame.path, name)
    const isEntered = isDirectory(opened)
    if (!isEntered && this.#needsInspection(opened, frame.path, name))
      return this.#takeNamed(frame, name, handle, opened, inspectedAtMs)
    this.#inodes.close(handle)
    return isEntered
  }

  #takeNamed(
    frame: OpenDirectoryFrame,
    name: EntryName,
    handle: Handle,
    seen: StatView,
    inspectedAtMs: number,
    listed?: string,
  ): false {
    const attributes = listed ?? this.#attributeNames(handle, frame.handle, name)
    if (attributes === undefined) return this.#skipReplaced(frame.path, name)
    if (seen.links === 1) this.#take(handle, seen, inspectedAtMs, attributes, frame.path, name)
    else {
      const inode = this.#inspect(handle, seen, inspectedAtMs, attributes)
      this.#pipeline.take(inode, joinEntryPath(frame.path, name), hashEntryName(frame, name))
    }
    this.#takenCount++
    return false
  }

  #take(
    handle: Handle,
    seen: StatView,
    inspectedAtMs: number,
    attributes: string,
    parentPath: Uint8Array,
    name: Uint8Array,
  ): void {
    const pipeline = isDirectory(seen) ? this.#directories : this.#pipeline
    // The root is changed after the plain inodes of its batch.
    const isPlain = parentPath.length + name.length > 0 && !hasAclOrCapability(attributes)
    if (isPlain && pipeline.takePlain(handle, seen, inspectedAtMs, parentPath, name)) return
    pipeline.take(this.#inspect(handle, seen, inspectedAtMs, attributes), joinEntryPath(parentPath, name))
  }

  /** Returns undefined for a deleted inode, and closes its handle. */
  #attributeNames(handle: Handle, parent: Handle, name: EntryName): string | undefined {
    const list = () => this.#inodes.attributeNames(handle, parent, name)
    return ignoreDeletedInode(() => useHandleOrClose(this.#inodes, handle, list))
  }

  #inspect(handle: Handle, seen: StatView, inspectedAtMs: number, attributes: string): OpenInode {
    return useHandleOrClose(this.#inodes, handle, () =>
      inspectInode(this.#inodes, handle, seen.keep(), inspectedAtMs, attributes),
    )
  }

  #skipReplaced(parentPath: Uint8Array, name: EntryName, reason: SkipReason = ENTRY_REPLACED_REASON): false {
    this.skip(reason, joinEntryPath(parentPath, name))
    return false
  }

  visitDirectory(directory: Handle, path: Uint8Array): void {
    const stat = ignoreVanishedEntry(() => this.#inodes.look(directory))
    if (stat && !this.#needsInspection(stat, path, EMPTY_PATH)) return
    const at = Date.now()
    // A deleted directory has no "." any more.
    const handle = this.#openEntry(directory, SELF_ENTRY_NAME)
    const seen = handle && useHandleOrClose(this.#inodes, handle, this.#inodes.look)
    const attributes = handle && this.#attributeNames(handle, directory, SELF_ENTRY_NAME)
    if (handle && seen && attributes !== undefined) this.#take(handle, seen, at, attributes, path, EMPTY_PATH)
    else this.#skipReplaced(path, EMPTY_PATH)
  }

  #openEntry(parent: Handle, name: EntryName): Handle | undefined {
    try {
      return this.#inodes.openEntry(parent, name)
    } catch {
      return openAfterReleasingHandles(this, () => ignoreVanishedEntry(() => this.#inodes.openEntry(parent, name)))
    }
  }

  skip(reason: SkipReason, path: Uint8Array | undefined): void {
    recordSkippedInode(this.report, reason, path)
  }

  onBoundary(stat: Stat): void {
    this.#settings.observer?.onBoundary?.(stat)
  }

  /** Returns whether the inode must be opened and decided on; otherwise reports it. */
  #needsInspection(stat: Stat, parentPath: Uint8Array, name: EntryName): boolean {
    if (isInodeOutsideBoundary(stat, this.#settings.boundary)) {
      this.onBoundary(stat)
      this.skip('sub-mount', joinEntryPath(parentPath, name))
      return false
    }
    const seen = this.#strategy.classify(stat)
    if (seen === 'inspect') return true
    this.report.visited++
    this.#settings.observer?.onVisit(stat)
    if (seen === 'unchanged') this.report.alreadyRight++
    else if (seen !== 'ignore') this.skip(seen.skip, joinEntryPath(parentPath, name))
    return false
  }

  /**
   * Records and makes all collected changes, and closes their inodes.
   * @param isBeforeRoot the root's change may be the last of a batch that has all changes
   */
  releaseHandles(isBeforeRoot = false): boolean {
    if (isBeforeRoot && this.#directories === this.#pipeline && !this.#pipeline.hasStarted) return false
    // The root is changed last.
    const any = this.#pipeline.flush()
    return this.#directories.flush() || any
  }

  [Symbol.dispose](): void {
    this.#pipeline.close()
    this.#directories.close()
  }
}
