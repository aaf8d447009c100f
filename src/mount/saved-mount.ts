import { errorCode, type Handle, type Host, isDirectory, type Stat } from '../host/host.ts'
import { type MountPoint, statPoint } from '../mount-table/mount-point.ts'
import { attachAt } from './attach.ts'
import { setTarget } from './mount-target.ts'

// open_tree(2) says ENOSPC where fs.mount-max is reached.
const OUT_OF_SOMETHING: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC'])

/** A clone of the mount at a point, kept while the mount itself has to go before the next one can come. */
export class SavedMount {
  readonly #host: Host
  readonly #point: MountPoint
  readonly #clone: Handle
  readonly #stat: Stat

  private constructor(host: Host, point: MountPoint, clone: Handle, stat: Stat) {
    this.#host = host
    this.#point = point
    this.#clone = clone
    this.#stat = stat
  }

  /**
   * Undefined where nothing that is worth keeping is mounted.
   * @throws {SystemError} where the node is out of something: then the mount is not to be taken away
   */
  static of(host: Host, point: MountPoint): SavedMount | undefined {
    const { inodes, mounts } = host
    let root: Handle | undefined
    try {
      root = inodes.openEntry(point.parent, point.name)
      const stat = inodes.statMountPoint(root)
      return stat.mountRoot ? new SavedMount(host, point, mounts.cloneTree(root), stat) : undefined
    } catch (error) {
      const code = errorCode(error)
      if (code === undefined || OUT_OF_SOMETHING.has(code)) throw error
      // A mount that does not answer, or cannot be cloned.
      return undefined
    } finally {
      if (root !== undefined) inodes.close(root)
    }
  }

  /** Does nothing where the mount itself has stayed. */
  putBack(): void {
    const there = statPoint(this.#host, this.#point)
    if (there !== 'broken' && there?.mountRoot && there.mountId === this.#stat.mountId) return
    // A layer that was covered is mounted on as it is.
    if (there === 'broken' || !there?.mountRoot) {
      setTarget(this.#host, this.#point, isDirectory(this.#stat) ? 'directory' : 'file')
    }
    attachAt(this.#host, this.#point, this.#clone)
  }

  close(): void {
    this.#host.inodes.close(this.#clone)
  }
}
