import { dirname } from 'node:path'
import {
  deferClose,
  errorCode,
  type Handle,
  type Inodes,
  isDirectory,
  openOnlyCached,
  SystemError,
} from '../host/host.ts'
import type { MountRow } from './mountinfo.ts'
import {
  createRemoteDeviceFinder,
  createUnresponsiveCheck,
  type LookupCaller,
  lookUpIsolated,
} from './responsiveness.ts'
import { createMountFinder } from './tree-location.ts'

/** Looks up paths that may be unresponsive: absolute, normalized and without links. A server or a locked directory can block them. */
export interface PathLookups {
  /** Checks whether a lookup gets no answer. An open after this check may open another directory: use `open` instead. */
  isUnresponsive(path: string): Promise<boolean>
  /**
   * Opens as `openLinkFree` does. On local file systems a caller that must not wait never waits for a directory that a
   * process keeps locked, even if directories are exchanged meanwhile.
   * @returns undefined if the lookup gets no answer
   * @throws {SystemError} as `openLinkFree`
   */
  open(path: string): Promise<Handle | undefined>
}

/** Creates lookups that share one read of the mount table. */
export function createPathLookups(caller: LookupCaller): PathLookups {
  const { host, isolatesWalks } = caller
  const mountsTo = createMountFinder(host.mounts.table())
  const isUnresponsive = createUnresponsiveCheck(caller, mountsTo)
  const findRemoteDevices = createRemoteDeviceFinder(mountsTo)
  return {
    isUnresponsive,
    async open(path) {
      if (isolatesWalks && findRemoteDevices(path) === '') return openFromCache(caller, path, mountsTo(path))
      // The cache does not show whether a server responds, so the path is checked before the open.
      return (await isUnresponsive(path)) ? undefined : host.inodes.openLinkFree(path)
    },
  }
}

/**
 * File systems whose cached names the kernel resolves without calling the file system. Others revalidate each name, as zfs, vfat
 * and sysfs do, and so does an overlay of such a type.
 */
const CACHED_TYPES = /^(ext[234]|xfs|btrfs|f2fs|tmpfs|ramfs|rootfs|devtmpfs|squashfs|erofs|autofs|overlay)$/

/** Limit of lookups by another process for one path. Concurrent mounts and memory pressure can empty the cache again. */
const ATTEMPTS = 3

/**
 * Opens a path from the cache alone, after another process has filled the cache. A concurrent change cannot make it wait.
 * @param mounts the mounts that the path leads through
 */
async function openFromCache(
  { host }: LookupCaller,
  path: string,
  mounts: readonly MountRow[],
): Promise<Handle | undefined> {
  const { inodes } = host
  const { openLinkFree } = openOnlyCached(inodes)
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
    // A tmpfs caches no missing names, and the cache does not show that a path leads through a file.
    throw new SystemError('openat2', leadsThroughFile(inodes, path) ? 'ENOTDIR' : 'ENOENT', path)
  }
}

/** Checks whether the kernel resolves a path from its cache alone after a lookup. The kernel and each file system must support it. */
function isCacheable(inodes: Inodes, path: string, mounts: readonly MountRow[]): boolean {
  if (!inodes.isCached('/')) return false
  return mounts.every(({ fsType, mountPoint }, index) => {
    // The kernel looks up no name in a file system that another one covers.
    if ((mounts[index + 1]?.mountPoint ?? path) === mountPoint) return true
    if (fsType !== 'overlay' || mountPoint !== '/') return CACHED_TYPES.test(fsType)
    // No user can exchange a name in the node's root directory. Another overlay may belong to a user.
    return inodes.isCached(`/${path.split('/')[1]}`)
  })
}

function leadsThroughFile(inodes: Inodes, path: string): boolean {
  const { openLinkFree } = openOnlyCached(inodes)
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    try {
      const handle = openLinkFree(above)
      using _ = deferClose(inodes, handle)
      return !isDirectory(inodes.stat(handle))
    } catch (error) {
      if (errorCode(error) === undefined) throw error
    }
  }
  return false
}
