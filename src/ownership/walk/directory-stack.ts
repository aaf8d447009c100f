import { Refusal } from '../../errors/refusal.ts'
import { DirentIterator } from '../../kernel/dirents.ts'
import { type EntryName, getErrno, type Handle, type Inodes, type Stat, useHandleOrClose } from '../../kernel/host.ts'
import { getHighWord, IntHashTable } from '../journal/int-table.ts'
import { hashEntryName, ignoreVanishedEntry, joinEntryPath } from './entry.ts'
import { type DirectoryReadProgress, type LivelockGuard, quotePathBytes } from './livelock-guard.ts'

const EMPTY_PATH = Buffer.alloc(0)
const PARENT_NAME = Uint8Array.from([0x2e, 0x2e])
// Limit of open directory handles, independent of the depth of the tree.
const MAX_OPEN_DIRECTORIES = 32
// Each directory on the stack costs at most 2 KiB.
const MAX_DIRECTORY_DEPTH = 16_384
// Some 13 bytes each. A moved directory beyond the limit may be walked once more.
const MAX_REMEMBERED_DIRECTORIES = 1 << 20

/** A directory that is partly read. */
interface DirectoryFrame extends Pick<Stat, 'inode' | 'born' | 'mountId'>, Omit<DirectoryReadProgress, 'handle'> {
  /** Undefined: parked. */
  handle: Handle | undefined
  /** Identifies the directory: see hashEntryName. */
  number: number
  /** Name in the parent frame. */
  name: EntryName
  /** Entries read but not visited. */
  block: DirentIterator | undefined
  /** Position after these entries; undefined: the end. */
  position: bigint | undefined
  /** Number of blocks read, and the position after one of them. */
  blocks: number
  mark: bigint | undefined
}

/** The directory at the top of the stack. */
export type OpenDirectoryFrame = DirectoryFrame & { handle: Handle }

function createDirectoryFrame(
  handle: Handle,
  stat: Stat,
  name: EntryName,
  path: Uint8Array,
  isMoved: boolean,
): DirectoryFrame {
  const { inode, born, mountId, changed } = stat
  const number = hashEntryName(stat, EMPTY_PATH)
  const nothing = { block: undefined, position: 0n, blocks: 0, mark: undefined, rereadCount: 0 }
  return { inode, born, mountId, changed, isMoved, handle, number, name, path, ...nothing }
}

/**
 * The directories from the base of a walk to its present one. Those far from the top are parked: closed, and reopened
 * later through "..".
 */
export class DirectoryStack {
  readonly #inodes: Inodes
  readonly #stack: DirectoryFrame[]
  readonly #guard: LivelockGuard
  /** Numbers of the directories on the stack. */
  readonly #open = new Set<number>()
  /** Numbers of the directories that were read to their end. */
  readonly #finished = new IntHashTable(0)

  /** @param top the root of the tree; the caller still owns the handle */
  constructor(inodes: Inodes, top: Handle, stat: Stat, guard: LivelockGuard) {
    this.#inodes = inodes
    this.#stack = []
    this.#guard = guard
    this.#add(createDirectoryFrame(inodes.duplicate(top), stat, EMPTY_PATH, EMPTY_PATH, false))
  }

  top(): OpenDirectoryFrame | undefined {
    const top = this.#stack.at(-1)
    if (top && !isFrameOpen(top)) throw new Error('a closed frame was used')
    return top
  }

  /** Returns whether the top is the base of the walk. The caller visits that directory itself. */
  isAtBase(): boolean {
    return this.#stack.length === 1
  }

  /** Returns the next entries to visit, or undefined at the end. */
  readBlock(frame: OpenDirectoryFrame): DirentIterator | undefined {
    while (frame.block === undefined || frame.block.isAtEnd) {
      if (frame.position === undefined) return undefined
      // A deleted directory has no entries: ENOENT.
      const bytes = ignoreVanishedEntry(() => this.#inodes.readEntries(frame.handle))
      const isMore = bytes !== undefined && bytes.length > 0
      frame.block = isMore ? new DirentIterator(bytes) : undefined
      frame.position = frame.block?.end
      if (frame.block) this.#checkBlock(frame, frame.block)
    }
    return frame.block
  }

  #checkBlock(frame: OpenDirectoryFrame, block: DirentIterator): void {
    // A server can return entries in an endless cycle. Any cycle reaches the mark, which moves on after ever more
    // blocks (Brent).
    if (frame.position === frame.mark && frame.rereadCount === 0) {
      throw Refusal.of(
        'tree-invalid',
        `directory ${quotePathBytes(frame.path)} lists the same entries again and again`,
        'repair its file system',
      )
    }
    // The first block is read right after the directory was inspected.
    if (frame.blocks++ > 0) frame.changed = this.#inodes.look(frame.handle).changed
    this.#guard.countEntries(this.#inodes, frame, block)
    if (Number.isInteger(Math.log2(frame.blocks))) frame.mark = frame.position
  }

  /**
   * Enters a directory. Returns false if it is on the stack, or was walked before it was moved; the caller then keeps
   * the handle.
   * @throws {Refusal} if directories are nested too deep
   */
  push(parent: OpenDirectoryFrame, handle: Handle, stat: Stat, name: EntryName): boolean {
    const isMoved = this.isMoved(parent, stat)
    const path = joinEntryPath(parent.path, name)
    // The name is a view into a block that is freed.
    const frame = createDirectoryFrame(handle, stat, Uint8Array.from(name), path, isMoved)
    if (this.#open.has(frame.number) || (isMoved && this.#isFinished(frame))) return false
    if (this.#stack.length > MAX_DIRECTORY_DEPTH) {
      throw Refusal.of(
        'tree-invalid',
        `directory ${quotePathBytes(path)} is nested more than ${MAX_DIRECTORY_DEPTH} deep, too deep for a walk`,
        'remove it',
      )
    }
    this.#add(frame)
    // The base (index 0) stays open, because every directory can be reached from it.
    const far = this.#stack.length - MAX_OPEN_DIRECTORIES
    if (far > 0) this.#park(this.#stack[far])
    return true
  }

  /**
   * Returns whether the directory or one above it was created or moved since the walk began. A move changes the ctime
   * of the directory and of its parent.
   */
  isMoved(parent: OpenDirectoryFrame, { changed }: Stat): boolean {
    if (parent.isMoved) return true
    if (!this.#guard.isRecent(changed)) return false
    parent.changed = this.#inodes.look(parent.handle).changed
    return this.#guard.isRecent(parent.changed)
  }

  #add(frame: DirectoryFrame): void {
    this.#stack.push(frame)
    this.#open.add(frame.number)
  }

  /**
   * Leaves the top directory. Returns the paths of directories that cannot be resumed; their remaining entries are not
   * visited.
   */
  pop(): Uint8Array[] {
    const finished = this.top()
    this.#stack.pop()
    if (finished) this.#remember(finished)
    const parent = this.#stack.at(-1)
    try {
      const isLost = finished && parent && !isFrameOpen(parent) && !this.#resume(parent, finished.handle, PARENT_NAME)
      return isLost ? this.#descend() : []
    } finally {
      this.#park(finished)
    }
  }

  #remember({ number }: DirectoryFrame): void {
    this.#open.delete(number)
    if (this.#finished.size >= MAX_REMEMBERED_DIRECTORIES || this.#isFinished({ number })) return
    this.#finished.insert(number | 0, getHighWord(number))
  }

  #isFinished({ number }: Pick<DirectoryFrame, 'number'>): boolean {
    return this.#finished.find(number | 0, getHighWord(number)) !== undefined
  }

  /** Resumes after the directory below was moved away: looks up its parents from the base, and verifies each. */
  #descend(): Uint8Array[] {
    for (const [depth, frame] of this.#stack.entries()) {
      const parent = this.#stack[depth - 1]
      if (isFrameOpen(frame) || parent?.handle === undefined) continue
      this.#guard.countMoved(1, parent.path)
      if (this.#resume(frame, parent.handle, frame.name)) {
        // No more handles are open than on the way down.
        if (depth > 1) this.#park(parent)
        continue
      }
      for (const dropped of this.#stack.splice(depth)) {
        this.#park(dropped)
        this.#open.delete(dropped.number)
      }
      return [frame.path]
    }
    return []
  }

  /** Reopens a directory at its last position, if the name still refers to it. */
  #resume(frame: DirectoryFrame, parent: Handle, name: EntryName): boolean {
    const handle = ignoreVanishedEntry(() => this.#inodes.openDirectory(parent, name))
    if (handle === undefined) return false
    if (useHandleOrClose(this.#inodes, handle, () => this.#isSameDirectory(frame, handle))) {
      frame.handle = handle
      return true
    }
    this.#inodes.close(handle)
    return false
  }

  #isSameDirectory(frame: DirectoryFrame, handle: Handle): boolean {
    const { inode, born, mountId, changed } = this.#inodes.stat(handle)
    frame.changed = changed
    const isSame = inode === frame.inode && born === frame.born && mountId === frame.mountId
    return isSame && (!frame.position || this.#seek(handle, frame.position))
  }

  /** Returns false for a deleted directory. It has no entries, and ext4 rejects positions in it (EINVAL). */
  #seek(handle: Handle, position: bigint): boolean {
    try {
      this.#inodes.seekEntries(handle, position)
      return true
    } catch (error) {
      if (getErrno(error) === 'EINVAL' && this.#inodes.stat(handle).links === 0) return false
      throw error
    }
  }

  /** Closes the handle, and drops the entries that were read ahead. */
  #park(frame: DirectoryFrame | undefined): void {
    if (frame?.handle === undefined) return
    this.#inodes.close(frame.handle)
    frame.handle = undefined
    if (frame.position === undefined) return
    frame.position = frame.block?.after ?? frame.position
    frame.rereadCount += frame.block?.rest ?? 0
    frame.block = undefined
  }

  close(): void {
    for (const frame of this.#stack) this.#park(frame)
  }
}

function isFrameOpen(frame: DirectoryFrame): frame is OpenDirectoryFrame {
  return frame.handle !== undefined
}
