import {
  DIRECTORY_TYPE,
  FILE_TYPE_MASK,
  type Inodes,
  REGULAR_FILE_TYPE,
  type Stat,
  type StatView,
  SYMLINK_TYPE,
  SystemError,
} from '../../src/kernel/host.ts'
import { type IdRange, mapToShownId } from '../../src/kernel/id-map.ts'
import { memoryEntries } from './entries.ts'
import { openBeneath, readLink } from './links.ts'
import { createStatBatch } from './stat-batch.ts'
import { type MemoryLocation, type MemoryWorld, parseDeviceNumber, text } from './world.ts'

const READ_ONLY = 1
const SET_IDS = 0o6000
const CAPABILITY = 'security.capability'

/**
 * Simulates over memfs the kernel's rules on which decisions depend: links, mounts, read-only, bits that a chown
 * clears.
 */
export function memoryInodes(world: MemoryWorld): Inodes {
  const stat = (place: MemoryLocation): Stat => statLocation(place)
  const writable = (place: MemoryLocation, syscall: string) => {
    if (place.mount.flags & READ_ONLY) throw new SystemError(syscall, 'EROFS', world.pathOf(place))
  }

  return {
    openLinkFree(path) {
      world.alive()
      let here: MemoryLocation = { mount: world.rootMount, path: '' }
      for (const part of path.split('/').slice(1)) {
        here = world.child(here, part)
        if (isType(stat(here), SYMLINK_TYPE)) throw new SystemError('openat2', 'ELOOP', path)
      }
      return world.open(here)
    },

    knownType: () => undefined,
    isCached: () => true,
    cachedOpens: {},
    typeOfMount: () => undefined,
    openBeneath: (root, path) => openBeneath(world, root, path),
    readLink: (handle) => readLink(world, handle),

    openTrusted(path) {
      world.alive()
      const here = resolvePath(world, path)
      if (!isType(stat(here), DIRECTORY_TYPE)) throw new SystemError('openat', 'ENOTDIR', path)
      return world.open(here)
    },

    openDirectory(parent, name) {
      const place = world.child(world.at(parent), text(name))
      const type = stat(place).mode & FILE_TYPE_MASK
      if (type === SYMLINK_TYPE) throw new SystemError('openat', 'ELOOP', text(name))
      if (type !== DIRECTORY_TYPE) throw new SystemError('openat', 'ENOTDIR', text(name))
      return world.open(place)
    },

    openEntry(parent, name) {
      const place = world.child(world.at(parent), text(name))
      stat(place)
      return world.open(place)
    },

    close(handle) {
      world.handles.delete(handle)
    },

    closeAll(handles) {
      for (const handle of handles) this.close(handle)
    },

    statBatches() {
      return [createStatBatch(this), createStatBatch(this)]
    },

    changes: () => undefined,

    pathOf: (handle) => world.pathOf(world.at(handle)),
    stat: (handle) => stat(world.at(handle)),
    look: (handle) => createView(stat(world.at(handle))),
    viewEntry: (parent, name) => createView(stat(world.child(world.at(parent), text(name)))),
    ownership: (handle) => stat(world.at(handle)),
    statEntry: (parent, name) => stat(world.child(world.at(parent), text(name))),
    queryEntry: (parent, name) => stat(world.child(world.at(parent), text(name))),
    statMountPoint: (parent, name) =>
      stat(name === undefined ? world.at(parent) : world.child(world.at(parent), text(name))),

    ...memoryEntries(world),

    chown(handle, gid) {
      const place = world.at(handle)
      writable(place, 'fchownat')
      const before = stat(place)
      world.act(`chown ${world.pathOf(place)} ${gid}`)
      const { fs } = place.mount.fileSystem
      fs.lchownSync(place.path || '/', before.uid, mapToStored(place, gid))
      if (!isType(before, DIRECTORY_TYPE) && before.mode & SET_IDS) fs.chmodSync(place.path, before.mode & 0o1777)
      if (isType(before, REGULAR_FILE_TYPE)) findAttributes(place).delete(CAPABILITY)
      keepModified(place, before)
    },

    chmod(handle, mode) {
      const place = world.at(handle)
      writable(place, 'fchmodat2')
      world.act(`chmod ${world.pathOf(place)} ${mode.toString(8)}`)
      const before = stat(place)
      place.mount.fileSystem.fs.chmodSync(place.path || '/', mode)
      keepModified(place, before)
    },

    handleLimit: () => 1_000_000,
    duplicate: (handle) => world.open(world.at(handle)),
    attributeNames: (handle) => [...findAttributes(world.at(handle)).keys()].join('\0'),
    getAttribute: (handle, name) => findAttributes(world.at(handle)).get(name),

    setAttribute(handle, name, value) {
      const place = world.at(handle)
      writable(place, 'setxattr')
      world.act(`setxattr ${world.pathOf(place)} ${name}`)
      findAttributes(place).set(name, value)
    },

    removeAttribute(handle, name) {
      const place = world.at(handle)
      writable(place, 'removexattr')
      world.act(`removexattr ${world.pathOf(place)} ${name}`)
      findAttributes(place).delete(name)
    },

    syncFileSystem: (handle) => world.act(`sync ${world.pathOf(world.at(handle))}`),
    fileSystemId: (handle) => world.at(handle).mount.fileSystem.id,
    formerFileSystemId: () => undefined,
    isReadOnly: (handle) => (world.at(handle).mount.flags & READ_ONLY) !== 0,
    space(handle) {
      const inodes = BigInt(world.at(handle).mount.fileSystem.fs.readdirSync('/').length)
      return {
        bytes: { total: 4096n, used: 1024n, available: 2048n },
        inodes: { total: 100n, used: inodes, available: 100n - inodes },
      }
    },
  }
}

function createView(stat: Stat): StatView {
  return { ...stat, keep: () => stat }
}

function isType(stat: Stat, type: number): boolean {
  return (stat.mode & FILE_TYPE_MASK) === type
}

function resolvePath(world: MemoryWorld, path: string, links = 0): MemoryLocation {
  if (links > 40) throw new SystemError('openat', 'ELOOP', path)
  const parts = path.split('/').filter(Boolean)
  let here: MemoryLocation = { mount: world.rootMount, path: '' }
  for (const [index, part] of parts.entries()) {
    const next = world.child(here, part)
    if (isType(statLocation(next), SYMLINK_TYPE)) {
      const target = String(next.mount.fileSystem.fs.readlinkSync(next.path))
      const base = target.startsWith('/') ? target : `${world.pathOf(here)}/${target}`
      return resolvePath(world, [base, ...parts.slice(index + 1)].join('/'), links + 1)
    }
    here = next
  }
  return here
}

/** memfs changes mtime on chown and chmod; Linux only changes ctime. */
function keepModified({ mount, path }: MemoryLocation, { modified }: Stat): void {
  const time = new Date(Number(modified / 1_000_000n))
  mount.fileSystem.fs.utimesSync(path || '/', time, time)
}

function findAttributes(place: MemoryLocation): Map<string, Uint8Array> {
  const { attributes } = place.mount.fileSystem
  const key = String(statLocation(place).inode)
  const found = attributes.get(key) ?? new Map<string, Uint8Array>()
  attributes.set(key, found)
  return found
}

const OVERFLOW = 65_534

function mapToShown(ranges: readonly IdRange[] | undefined, id: number): number {
  return ranges === undefined ? id : (mapToShownId(ranges, id) ?? OVERFLOW)
}

function mapToStored({ mount: { ids } }: MemoryLocation, gid: number): number {
  const there = ids === undefined ? gid : mapToStoredId(ids.gids, gid)
  if (there === undefined) throw new SystemError('fchownat', 'EOVERFLOW', String(gid))
  return there
}

function statLocation(place: MemoryLocation): Stat {
  const { mount, path } = place
  const s = mount.fileSystem.fs.lstatSync(path || '/', { bigint: true })
  return {
    device: parseDeviceNumber(mount.fileSystem),
    inode: s.ino,
    born: s.birthtimeNs,
    changed: Number(s.ctimeNs) / 1e6,
    modified: s.mtimeNs,
    size: s.size,
    mode: Number(s.mode),
    uid: Number(s.uid),
    gid: mapToShown(mount.ids?.gids, Number(s.gid)),
    links: Number(s.nlink),
    mountId: Number(mount.id),
    mountRoot: path === mount.root,
    immutable: false,
  }
}

/** Returns undefined if the shown id cannot be stored. */
export function mapToStoredId(ranges: readonly IdRange[], id: number): number | undefined {
  const range = ranges.find(({ shown, count }) => id >= shown && id < shown + count)
  return range && range.disk + id - range.shown
}
