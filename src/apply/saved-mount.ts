import { errorCode, type Handle, type Host, isDirectory } from '../host/host.ts'
import { attachAt } from './attach.ts'
import type { MountPoint } from './mount-point.ts'
import { setTarget } from './mount-target.ts'

/** A clone of the mount at a point, kept while the mount itself has to go before the next one can come. */
export class SavedMount {
  readonly #host: Host
  readonly #point: MountPoint
  readonly #clone: Handle
  readonly #type: 'directory' | 'file'

  private constructor(host: Host, point: MountPoint, clone: Handle, type: 'directory' | 'file') {
    this.#host = host
    this.#point = point
    this.#clone = clone
    this.#type = type
  }

  /** Undefined where nothing that is worth keeping is mounted. */
  static of(host: Host, point: MountPoint): SavedMount | undefined {
    const { inodes, mounts } = host
    let root: Handle | undefined
    try {
      root = inodes.openEntry(point.parent, point.name)
      const stat = inodes.statMountPoint(root)
      const type = isDirectory(stat) ? 'directory' : 'file'
      return stat.mountRoot ? new SavedMount(host, point, mounts.cloneTree(root), type) : undefined
    } catch (error) {
      // A mount that does not answer.
      if (errorCode(error) === undefined) throw error
      return undefined
    } finally {
      if (root !== undefined) inodes.close(root)
    }
  }

  putBack(): void {
    setTarget(this.#host, this.#point, this.#type)
    attachAt(this.#host, this.#point, this.#clone)
  }

  close(): void {
    this.#host.inodes.close(this.#clone)
  }
}
