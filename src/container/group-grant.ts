import { Refusal } from '../errors/refusal.ts'
import { needsGroupWalk } from '../fsgroup/apply-to-volume.ts'
import { refuseSystemGroup } from '../fsgroup/system-group.ts'
import type { Handle } from '../kernel/host.ts'
import { type MountTableSnapshot, readFileSystemType } from '../kernel/mount-table/mountinfo.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { volumeRecords } from '../state/volume-record.ts'
import type { CloneRequest } from './clone-request.ts'
import type { CloneSource } from './clone-source.ts'
import { refuseModekeepFiles } from './refused-sources.ts'

/** A volume with content that is walked before the first container, because the pod's annotation requests it. */
export interface GroupGrant {
  identity: string
  group: number
}

/**
 * Finds whether a requested walk is still to be done. A volume is walked once: after that, other groups are mapped. A container
 * that only reads has it walked too, because its mapping would keep the pod's next container from walking it.
 * @param requests by each path of the volume that a rule names; all of them must permit the walk
 * @throws {Refusal} if a walk is needed, and no rule permits it or the volume cannot be recorded
 */
export function findGroupGrant(
  session: Session,
  requests: readonly CloneRequest[],
  { root, tree, clonedFrom }: CloneSource,
  table: MountTableSnapshot,
): GroupGrant | undefined {
  const { inodes } = session.host
  const [{ groupAccess, group, options = [] } = {}] = requests
  if (groupAccess === undefined || group === undefined || root === undefined) return undefined
  if (inodes.isReadOnly(root.handle)) return undefined
  const identity = resolveVolumeIdentity(session, root.handle, inodes.stat(root.handle))
  if (identity !== undefined && !needsGrant(session, root.handle, group, identity)) return undefined
  const type = readFileSystemType(session.host, root.handle)
  const rulesByPath = requests.map(({ grants = [] }) =>
    grants.filter((rule) => rule.groupAccess === 'grant' && type !== undefined && rule.fsTypes.includes(type)),
  )
  if (rulesByPath.some((rules) => rules.length === 0)) {
    if (options.includes('ro')) return undefined
    throw Refusal.of(
      'map-grant',
      'may not be walked (annotation modekeep/group-access)',
      'leave the annotation out, or have "groupAccess": "grant" written in the rule of "map" for it',
    )
  }
  if (identity === undefined)
    throw Refusal.of('map-grant', 'has no identity by which a walk could be recorded', 'leave the annotation out')
  // The walk is of the whole volume, and the part for a subPath was checked alone.
  refuseModekeepFiles(session, table, root.handle, true)
  for (const rules of rulesByPath) refuseSystemGroup(session, { tree, clonedFrom }, group, rules, table)
  return { identity, group }
}

/** Returns whether the volume was never walked with access for a group, or such a walk was not completed. */
export function needsGrant(session: Session, root: Handle, groupId: number, identity: string): boolean {
  const record = volumeRecords.readUnlessDamaged(session, identity)
  // The walk skips a root whose group its user has changed since, so it would be repeated without end.
  const isRootKept = record?.group === session.host.inodes.stat(root).gid || record?.changedSince?.hasRoot
  if (record?.complete && record.groupAccess === 'grant' && isRootKept) return false
  return needsGroupWalk(session, root, { groupId, ...GRANT }, identity)
}

/** The walk of kubelet's fsGroup. */
export const GRANT = { access: 'grant', changePolicy: 'OnRootMismatch' } as const
