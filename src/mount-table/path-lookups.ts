import { dirname } from 'node:path'
import { closing, errorCode, type Handle, type Inodes, isDirectory, SystemError } from '../host/host.ts'
import type { MountRow } from './mountinfo.ts'
import {
  createRemoteDeviceFinder,
  createUnresponsiveCheck,
  type LookupCaller,
  lookUpIsolated,
} from './responsiveness.ts'
import { createMountFinder } from './tree-location.ts'

/** Paths of the node, absolute, normal and without links, that a server may not answer for or a process may keep locked. */
export interface PathLookups {
  /** Whether a lookup gets no answer. What is opened after that may be another directory: use `open` for that. */
  isUnresponsive(path: string): Promise<boolean>
  /**
   * Opens as `openLinkFree` does. On this node's own file systems a caller that must not wait never waits for a directory that a
   * process keeps locked, whatever is exchanged meanwhile.
   * @returns undefined where the lookup gets no answer
   * @throws {SystemError} as `openLinkFree`
   */
  open(path: string): Promise<Handle | undefined>
}

/** Reads the mount table once. */
export function createPathLookups(caller: LookupCaller): PathLookups {
  const { host, isolatesWalks } = caller
  const isUnresponsive = createUnresponsiveCheck(caller)
  const findRemoteDevices = createRemoteDeviceFinder(host)
  const mountsTo = createMountFinder(host.mounts.table())
  return {
    isUnresponsive,
    async open(path) {
      if (isolatesWalks && findRemoteDevices(path) === '') return openFromCache(caller, path, mountsTo(path))
      // Of a server the cache tells little: it is only asked before whether it responds.
      return (await isUnresponsive(path)) ? undefined : host.inodes.openLinkFree(path)
    },
  }
}

/**
 * Types whose names the kernel resolves from its cache, once they are there. Others check each name, as zfs, vfat and sysfs do,
 * and so does an overlay of such a type.
 */
const CACHED_TYPES = /^(ext[234]|xfs|btrfs|f2fs|tmpfs|ramfs|rootfs|devtmpfs|squashfs|erofs|autofs|overlay)$/

/** Lookups that another process makes for one path: mounts made at the same moment, or a full memory, empty the cache. */
const ATTEMPTS = 3

/**
 * The other process fills the cache, and the open uses the cache alone: nothing in between can make it wait.
 * @param mounts that the path leads through
 */
async function openFromCache(
  { host }: LookupCaller,
  path: string,
  mounts: readonly MountRow[],
): Promise<Handle | undefined> {
  const { inodes } = host
  const { openLinkFree } = { ...inodes, ...inodes.cachedOpens }
  for (let attempt = 0; ; attempt++) {
    try {
      return openLinkFree(path)
    } catch (error) {
      if (errorCode(error) !== 'EAGAIN') throw error
    }
    if (attempt === ATTEMPTS) return undefined
    const answer = await lookUpIsolated(host, path)
    if (answer === undefined) return undefined
    if (answer === 'found' && isCacheable(inodes, path, mounts)) continue
    try {
      return openLinkFree(path)
    } catch (error) {
      if (errorCode(error) !== 'EAGAIN') throw error
    }
    if (answer !== 'not found') return inodes.openLinkFree(path)
    // A tmpfs caches no name that is missing, and no cache tells that a path leads through a file.
    throw new SystemError('openat2', leadsThroughFile(inodes, path) ? 'ENOTDIR' : 'ENOENT', path)
  }
}

/** Whether the kernel resolves a whole path from its cache after a lookup: it has the flag for that, and each file system allows it. */
function isCacheable(inodes: Inodes, path: string, mounts: readonly MountRow[]): boolean {
  if (!inodes.isCached('/')) return false
  return mounts.every(({ fsType, mountPoint }, index) => {
    // No name is looked up in a file system that another one covers.
    if ((mounts[index + 1]?.mountPoint ?? path) === mountPoint) return true
    if (fsType !== 'overlay' || mountPoint !== '/') return CACHED_TYPES.test(fsType)
    // Of the node's root no user can exchange the first name. Another overlay may belong to a user.
    return inodes.isCached(`/${path.split('/')[1]}`)
  })
}

function leadsThroughFile(inodes: Inodes, path: string): boolean {
  const { openLinkFree } = { ...inodes, ...inodes.cachedOpens }
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    try {
      const handle = openLinkFree(above)
      using _ = closing(inodes, handle)
      return !isDirectory(inodes.stat(handle))
    } catch (error) {
      if (errorCode(error) === undefined) throw error
    }
  }
  return false
}
