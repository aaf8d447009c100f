import { createFsFromVolume, type IFs } from 'memfs'
import { type EntryName, type Handle, SystemError } from '../../src/kernel/host.ts'
import type { IdMap } from '../../src/kernel/id-map.ts'
import { rootVolume } from './root-volume.ts'

export interface MemoryFileSystem {
  id: string
  fs: IFs
  /** Extended attributes by inode, because memfs has none. */
  attributes: Map<string, Map<string, Uint8Array>>
  /** True if it can be mounted idmapped. */
  mappable: boolean
  /** Identities of the disk below it; undefined if the kernel reports none. */
  disk?: string[]
}

export interface MemoryMount {
  id: bigint
  fileSystem: MemoryFileSystem
  /** The directory of the file system that is the mount's root; "" is its top. */
  root: string
  at: { mount: MemoryMount; path: string } | undefined
  flags: number
  /** Two groups that an idmapped mount exchanges. */
  ids: IdMap | undefined
}

/** A path in a file system, seen through a mount. */
export interface MemoryLocation {
  mount: MemoryMount
  path: string
}

/** Thrown by every call on a world whose process was killed. Code under test must not swallow it. */
export class Killed extends Error {}

/**
 * A node in memory: file systems of memfs, a mount table, open handles, and a log of all changes. It tests order and
 * decisions. memfs is not a kernel, so it proves no safety.
 */
export class MemoryWorld {
  readonly mounts: MemoryMount[] = []
  readonly handles = new Map<Handle, MemoryLocation & { position: number }>()
  readonly actions: string[] = []
  readonly locked = new Set<string>()
  boot = 'boot-1'
  /** Kills the process instead of the action with this number (0 is the next one). */
  killAt = Number.POSITIVE_INFINITY
  #dead = false
  #counter = 0n
  #fd = 100
  readonly rootMount: MemoryMount

  constructor() {
    this.rootMount = this.addMount(this.addFileSystem(), '')
    this.rootMount.at = { mount: this.rootMount, path: '/none' }
  }

  /** The root file system, for setup and assertions. */
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

  open(place: MemoryLocation): Handle {
    const handle = this.#fd++ as Handle
    this.handles.set(handle, { ...place, position: 0 })
    return handle
  }

  at(handle: Handle): MemoryLocation & { position: number } {
    this.alive()
    const place = this.handles.get(handle)
    if (!place) throw new SystemError('handle', 'EBADF', String(handle))
    return place
  }

  /** Every effect calls this first. */
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

  /** Starts a new process after a kill: open handles of the old one are closed, and its detached mounts are gone. */
  revive(): void {
    this.#dead = false
    this.killAt = Number.POSITIVE_INFINITY
    this.handles.clear()
    this.locked.clear()
  }

  /** Removes all mounts and keeps the files. */
  reboot(): void {
    this.revive()
    this.boot = `boot-${++this.#counter}`
    for (const mount of this.mounts) if (mount !== this.rootMount) mount.at = undefined
  }

  /** Returns the topmost mount on a location. */
  cross({ mount, path }: MemoryLocation): MemoryLocation {
    const above = this.mounts.find((m) => m.at?.mount === mount && m.at.path === path && m !== this.rootMount)
    return above ? this.cross({ mount: above, path: above.root }) : { mount, path }
  }

  child(parent: MemoryLocation, name: string): MemoryLocation {
    if (name === '.') return { mount: parent.mount, path: parent.path }
    if (name === '..') return { mount: parent.mount, path: parent.path.slice(0, parent.path.lastIndexOf('/')) }
    return this.cross({ mount: parent.mount, path: `${parent.path}/${name}` })
  }

  /** Returns the absolute path of a location in the whole tree. */
  pathOf({ mount, path }: MemoryLocation): string {
    const below = path.slice(mount.root.length)
    if (mount === this.rootMount) return below || '/'
    if (!mount.at) return `(detached)${below}`
    const above = this.pathOf(mount.at)
    return `${above === '/' ? '' : above}${below}`
  }
}

/** Names in memfs are text. The kernel tests cover other bytes. */
export function text(name: EntryName): string {
  return Buffer.from(name).toString()
}

export function parseDeviceNumber({ id }: MemoryFileSystem): number {
  return Number.parseInt(id, 16)
}
