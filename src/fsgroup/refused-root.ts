import type { FsGroupRequest } from '../config/mount-request.ts'
import { Refusal } from '../errors/refusal.ts'
import type { Stat } from '../kernel/host.ts'
import { hasRequestedOwnership } from '../ownership/inode/policy.ts'

/** @throws {Refusal} before a walk that cannot give the root its group */
export function refuseImmutableRoot(source: string, root: Stat, fsGroup: FsGroupRequest): void {
  if (root.immutable && !hasRequestedOwnership(root, fsGroup))
    throw createRootGroupRefusal(source, root, fsGroup.groupId, 'it is immutable or append-only')
}

/** Checks the root after a walk. @param reason of the walk for not changing it. @throws {Refusal} */
export function refuseRootWithOtherGroup(source: string, root: Stat, group: number, reason: string | undefined): void {
  if (root.gid === group && reason === undefined) return
  throw createRootGroupRefusal(source, root, group, reason ?? 'its file system ignores the change')
}

/** The remedy for some reasons of a walk. */
const ROOT_GROUP_REMEDIES: Readonly<Record<string, string>> = {
  'read-only': 'have its server export it for writing, or make its file system writable',
  'over quota': 'make room in the quota',
}

const createRootGroupRefusal = (source: string, { gid }: Stat, group: number, reason: string) =>
  Refusal.of(
    'group-not-applied',
    `group ${group} cannot be applied to the root of ${source}, which has group ${gid}: ${reason}`,
    `${ROOT_GROUP_REMEDIES[reason] ?? 'remove the cause ("chattr -i -a" where lsattr -d shows one of these attributes, "no_root_squash" of an NFS export)'}, or use ownership "idmap" or "none"`,
  )
