import { createFsFromVolume, type IFs } from 'memfs'
import { type Handle, type Name, SystemError } from '../../src/host/host.ts'
import type { IdMap } from '../../src/host/id-map.ts'
import { rootVolume } from './root-volume.ts'

export interface MemoryFileSystem {
  id: string
  fs: IFs
  /** Extended attributes by inode: memfs has none. */
  attributes: Map<string, Map<string, Uint8Array>>
  /** Whether it can be mounted idmapped. */
  mappable: boolean
  /** What names the disk it lies on; undefined: the kernel tells nothing. */
  disk?: string[]
}

export interface MemoryMount {
  id: bigint
  fileSystem: MemoryFileSystem
  /** The directory of the file system that is the mount's root; "" is its top. */
  root: string
  at: { mount: MemoryMount; path: string } | undefined
  flags: number
  /** Two groups that show as each other through an idmapped mount. */
  ids: IdMap | undefined
}

/** A place in a file system seen through a mount. */
export interface Place {
  mount: MemoryMount
  path: string
}

/** Thrown by every call on a world whose process "died"; nothing may catch it for good. */
export class Killed extends Error {}

/**
 * A node in memory: file systems of memfs, a mount table, open handles, and the log of everything that changed
 * something. It is the stage for order and decisions; memfs is no kernel and proves no safety.
 */
export class MemoryWorld {
  readonly mounts: MemoryMount[] = []
  readonly handles = new Map<Handle, Place & { position: number }>()
  readonly actions: string[] = []
  readonly locked = new Set<string>()
  boot = 'boot-1'
  /** Dies in place of the action with this number (0 is the next one). */
  killAt = Number.POSITIVE_INFINITY
  #dead = false
  #counter = 0n
  #fd = 100
  readonly rootMount: MemoryMount

  constructor() {
    this.rootMount = this.addMount(this.addFileSystem(), '')
    this.rootMount.at = { mount: this.rootMount, path: '/none' }
  }

  /** The root file system, for arranging and checking. */
  get fs(): IFs {
    return this.rootMount.fileSystem.fs
  }

  addFileSystem(): MemoryFileSystem {
    const fs = createFsFromVolume(rootVolume())
    fs.chmodSync('/', 0o755)
    return { id: (++this.#counter).toString(16), fs, attributes: new Map(), mappable: true }
  }

  addMount(fileSystem: MemoryFileSystem, root: string): MemoryMount {
    const mount: MemoryMount = { id: ++this.#counter, fileSystem, root, at: undefined, flags: 0, ids: undefined }
    this.mounts.push(mount)
    return mount
  }

  open(place: Place): Handle {
    const handle = this.#fd++ as Handle
    this.handles.set(handle, { ...place, position: 0 })
    return handle
  }

  at(handle: Handle): Place & { position: number } {
    this.alive()
    const place = this.handles.get(handle)
    if (!place) throw new SystemError('handle', 'EBADF', String(handle))
    return place
  }

  /** Every effect passes here first. */
  act(action: string): void {
    this.alive()
    if (this.killAt-- <= 0) {
      this.#dead = true
      throw new Killed(`killed before: ${action}`)
    }
    this.actions.push(action)
  }

  alive(): void {
    if (this.#dead) throw new Killed('dead already')
  }

  /** A new process after a kill: what the old one held open is gone, so are detached mounts nobody holds. */
  revive(): void {
    this.#dead = false
    this.killAt = Number.POSITIVE_INFINITY
    this.handles.clear()
    this.locked.clear()
  }

  /** Mounts are gone, files stay. */
  reboot(): void {
    this.revive()
    this.boot = `boot-${++this.#counter}`
    for (const mount of this.mounts) if (mount !== this.rootMount) mount.at = undefined
  }

  /** From a place to the topmost mount on it. */
  cross({ mount, path }: Place): Place {
    const above = this.mounts.find((m) => m.at?.mount === mount && m.at.path === path && m !== this.rootMount)
    return above ? this.cross({ mount: above, path: above.root }) : { mount, path }
  }

  child(parent: Place, name: string): Place {
    if (name === '.') return { mount: parent.mount, path: parent.path }
    if (name === '..') return { mount: parent.mount, path: parent.path.slice(0, parent.path.lastIndexOf('/')) }
    return this.cross({ mount: parent.mount, path: `${parent.path}/${name}` })
  }

  /** The absolute path of a place as the whole tree shows it. */
  pathOf({ mount, path }: Place): string {
    const below = path.slice(mount.root.length)
    if (mount === this.rootMount) return below || '/'
    if (!mount.at) return `(detached)${below}`
    const above = this.pathOf(mount.at)
    return `${above === '/' ? '' : above}${below}`
  }
}

/** memfs names are text: byte names belong to the kernel's tests. */
export function text(name: Name): string {
  return Buffer.from(name).toString()
}

export function deviceOf({ id }: MemoryFileSystem): number {
  return Number.parseInt(id, 16)
}
