import { Dirents } from '../../host/dirents.ts'
import { errorCode, type Handle, type Inodes, type Name, type Stat } from '../../host/host.ts'
import { ignoreVanished } from './entry.ts'

/** A directory half read. */
export interface PackedFrame extends Pick<Stat, 'inode' | 'born' | 'mountId'> {
  /** Undefined: parked. */
  handle: Handle | undefined
  /** Its name in the frame above. */
  name: Name
  path: Uint8Array
  /** Entries that are read but not visited. */
  block?: Uint8Array
  /** Where to read on after them; undefined: nowhere, the rest is another thread's. */
  position: bigint | undefined
}

/** A directory that nothing was read of. */
export function frameOf(handle: Handle, stat: Stat, name: Name, path: Uint8Array): PackedFrame {
  const { inode, born, mountId } = stat
  return { inode, born, mountId, handle, name, path, position: 0n }
}

/** One directory on the way of a walk. */
export class Frame {
  open: Handle | undefined
  readonly name: Name
  readonly path: Uint8Array
  readonly #inodes: Inodes
  readonly inode: bigint
  readonly born: bigint
  readonly #mountId: number
  #block: Dirents | undefined
  #position: bigint | undefined

  constructor(inodes: Inodes, { handle, name, path, block, position, inode, born, mountId }: PackedFrame) {
    this.#inodes = inodes
    this.open = handle
    this.name = name
    this.path = path
    this.inode = inode
    this.born = born
    this.#mountId = mountId
    this.#block = block && new Dirents(block)
    this.#position = position
  }

  get handle(): Handle {
    if (this.open === undefined) throw new Error('a closed frame was used')
    return this.open
  }

  /** The next entry, undefined at the end. */
  next(): Dirents | undefined {
    while (!this.#block?.next()) {
      if (this.#position === undefined) return undefined
      // A directory that was removed has no entries: ENOENT.
      const bytes = ignoreVanished(() => this.#inodes.readEntries(this.handle))
      if (bytes === undefined || bytes.length === 0) {
        this.#position = undefined
        return undefined
      }
      this.#block = new Dirents(bytes)
      this.#position = this.#block.end
    }
    return this.#block
  }

  /** Lets go of the handle and of what was read ahead. */
  park(): void {
    if (this.open !== undefined) this.#inodes.close(this.open)
    this.open = undefined
    // What another thread has of a block must not be read again.
    if (this.#position !== undefined && !this.#block?.isSplit) this.#forgetReadAhead()
  }

  /** Takes the directory up again where it was left, if `handle` really is that directory. */
  resume(handle: Handle): boolean {
    const { inode, born, mountId } = this.#inodes.stat(handle)
    if (inode !== this.inode || born !== this.born || mountId !== this.#mountId) return false
    if (this.#position && !this.#seek(handle, this.#position)) return false
    this.open = handle
    return true
  }

  /** For another thread, which reads on with the same handle. */
  pack(): PackedFrame {
    this.#forgetReadAhead()
    if (this.open !== undefined && this.#position !== undefined && !this.#seek(this.open, this.#position)) {
      this.#position = undefined
    }
    return { ...this.#base(), handle: this.open, position: this.#position }
  }

  /** A part of what was read ahead for another thread, where it is worth it. */
  split(): PackedFrame | undefined {
    if (this.open === undefined || !this.#block?.isWorthSharing()) return undefined
    const handle = this.#inodes.tryDuplicate(this.open)
    if (handle === undefined) return undefined
    const block = this.#block.split()
    return { ...this.#base(), handle, block, position: undefined }
  }

  /** False for a directory that was removed: it has no entries, and ext4 refuses positions in it (EINVAL). */
  #seek(handle: Handle, position: bigint): boolean {
    try {
      this.#inodes.seekEntries(handle, position)
      return true
    } catch (error) {
      if (errorCode(error) === 'EINVAL' && this.#inodes.stat(handle).links === 0) return false
      throw error
    }
  }

  #base(): Pick<PackedFrame, 'inode' | 'born' | 'mountId' | 'name' | 'path'> {
    const { inode, born, name, path } = this
    return { inode, born, mountId: this.#mountId, name, path }
  }

  #forgetReadAhead(): void {
    this.#position = this.#block?.after ?? this.#position
    this.#block = undefined
  }
}
