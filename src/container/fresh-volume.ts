import { Refusal } from '../errors/refusal.ts'
import { applyGroupToVolume } from '../fsgroup/apply-to-volume.ts'
import { findOtherVolumeUsers, listVolumeUsers, readGroupOnDisk } from '../fsgroup/holders.ts'
import { setDirectoryGroup } from '../fsgroup/root-bit.ts'
import { refuseSystemGroup } from '../fsgroup/system-group.ts'
import { DirentIterator } from '../kernel/dirents.ts'
import { deferHandleClose, type EntryName, type Handle, type Inodes, isDirectory, type Stat } from '../kernel/host.ts'
import type { MountTableSnapshot } from '../kernel/mount-table/mountinfo.ts'
import { ignoreVanishedEntry, SELF_ENTRY_NAME } from '../ownership/walk/entry.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import type { CloneRequest } from './clone-request.ts'
import type { CloneSource } from './clone-source.ts'

/**
 * A volume that was never written to. A mapping would not let the pod write there, because mkfs makes the root 0755. Its
 * root gets the group on disk instead, as kubelet does for an fsGroup.
 */
export interface FreshVolume {
  identity: string
  group: number
  /** Whether it has directories, which kubelet makes for subPaths. They get the group too. */
  hasDirectories: boolean
}

/** mkfs.ext4 makes it, with mode 0700. */
const LOST_AND_FOUND = Buffer.from('lost+found')

/** Kubelet makes one directory for each component of a subPath. */
const MAX_FRESH_DIRECTORIES = 64
const MAX_FRESH_DEPTH = 16

/**
 * Finds whether a volume is fresh: group 0 has its root, it has no file, and root owns its directories.
 * @param groups of the fresh volumes of the container so far, by identity
 * @returns undefined if it is not, the container cannot write to it, or another pod relies on its group on disk
 * @throws {UnmappableVolume} if no rule permits the group, which the pod's files would have on disk
 */
export function findFreshVolume(
  session: Session,
  { freshGroup, group: requested, options, grants }: CloneRequest,
  { root, tree, clonedFrom }: CloneSource,
  groups: ReadonlyMap<string, number>,
  table: MountTableSnapshot,
): FreshVolume | undefined {
  const { inodes } = session.host
  if (freshGroup === undefined || requested === undefined || requested === 0 || root === undefined) return undefined
  if (options.includes('ro') || inodes.isReadOnly(root.handle)) return undefined
  const found = countFreshDirectories(inodes, root.handle)
  if (found === undefined) return undefined
  const identity = resolveVolumeIdentity(session, root.handle, inodes.stat(root.handle))
  if (identity === undefined) return undefined
  const group = groups.get(identity) ?? requested
  const users = listVolumeUsers(findOtherVolumeUsers(session, { volume: identity, source: root.path }, undefined))
  if (users.some((user) => ![undefined, group].includes(readGroupOnDisk(user)))) return undefined
  refuseSystemGroup(session, { tree, clonedFrom }, group, grants ?? [{}], table)
  return { identity, group, hasDirectories: found > 0 }
}

/** Applies the group to a fresh volume. Call it after the container's record is written, which protects the group. */
export async function applyGroupToFreshVolume(
  session: Session,
  { freshGroup }: CloneRequest,
  { root, clonedFrom }: CloneSource,
  { identity, group, hasDirectories }: FreshVolume,
  pod: string,
): Promise<void> {
  if (root === undefined) return
  if (freshGroup === 'unrecorded') {
    const directories = clonedFrom === undefined ? [root.handle] : [clonedFrom, root.handle]
    for (const directory of directories) setDirectoryGroup(session, directory, group)
    return
  }
  const { inodes } = session.host
  const fsGroup = { groupId: group, access: 'grant', changePolicy: 'OnRootMismatch' } as const
  const applied = await applyGroupToVolume(
    session,
    root.handle,
    { ...fsGroup, isRootOnly: !hasDirectories },
    {
      volume: identity,
      source: root.path,
      pod,
      restoreOnUnmount: false,
      confirm() {
        if (countFreshDirectories(inodes, root.handle) === undefined)
          throw Refusal.of('map-sub-path', 'was empty and is being written to by another pod', 'kubelet tries again')
      },
    },
  )
  applied.lock.dispose()
}

/** Counts the directories of a fresh volume without lost+found. Returns undefined if the volume is not fresh. */
function countFreshDirectories(inodes: Inodes, root: Handle): number | undefined {
  const top = inodes.stat(root)
  return isFreshDirectory(top) ? countBelow(root, SELF_ENTRY_NAME, 0) : undefined

  function countBelow(parent: Handle, name: EntryName, depth: number): number | undefined {
    if (depth > MAX_FRESH_DEPTH) return undefined
    const directory = ignoreVanishedEntry(() => inodes.openDirectory(parent, name))
    if (directory === undefined) return undefined
    using _ = deferHandleClose(inodes, directory)
    let count = 0
    for (let block = inodes.readEntries(directory); block.length > 0; block = inodes.readEntries(directory)) {
      const entries = new DirentIterator(block)
      while (entries.next()) {
        if (depth === 0 && LOST_AND_FOUND.equals(entries.name)) continue
        const stat = entries.isFile ? undefined : ignoreVanishedEntry(() => inodes.statEntry(directory, entries.name))
        if (stat === undefined || !isFreshDirectory(stat) || stat.mountId !== top.mountId) return undefined
        const below = countBelow(directory, entries.name, depth + 1)
        if (below === undefined) return undefined
        count += 1 + below
        if (count > MAX_FRESH_DIRECTORIES) return undefined
      }
    }
    return count
  }
}

const isFreshDirectory = (stat: Stat) => isDirectory(stat) && stat.uid === 0 && stat.gid === 0
