import { Refusal } from '../errors/refusal.ts'
import { needsGroupWalk } from '../fsgroup/apply-to-volume.ts'
import { refuseSystemGroup } from '../fsgroup/system-group.ts'
import { type MountTableSnapshot, readFileSystemType } from '../kernel/mount-table/mountinfo.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { volumeRecords } from '../state/volume-record.ts'
import type { CloneRequest } from './clone-request.ts'
import type { CloneSource } from './clone-source.ts'

/** A volume with content that is walked before the first container, because the pod's annotation requests it. */
export interface GroupGrant {
  identity: string
  group: number
}

/**
 * Finds whether a requested walk is still to be done. A volume is walked once: after that, other groups are mapped.
 * @throws {Refusal} if no rule permits the walk, or the volume cannot be recorded
 */
export function findGroupGrant(
  session: Session,
  { groupAccess, group, options, grants }: CloneRequest,
  { root, tree, clonedFrom }: CloneSource,
  table: MountTableSnapshot,
): GroupGrant | undefined {
  const { inodes } = session.host
  if (groupAccess === undefined || group === undefined || root === undefined) return undefined
  if (options.includes('ro') || inodes.isReadOnly(root.handle)) return undefined
  const type = readFileSystemType(session.host, root.handle)
  const rules = (grants ?? []).filter(
    (rule) => rule.groupAccess === 'grant' && type !== undefined && rule.fsTypes.includes(type),
  )
  if (rules.length === 0)
    throw Refusal.of(
      'map-grant',
      'may not be walked (annotation modekeep/group-access)',
      'leave the annotation out, or have "groupAccess": "grant" written in the rule of "map" for it',
    )
  const stat = inodes.stat(root.handle)
  const identity = resolveVolumeIdentity(session, root.handle, stat)
  if (identity === undefined)
    throw Refusal.of('map-grant', 'has no identity by which a walk could be recorded', 'leave the annotation out')
  const record = volumeRecords.readUnlessDamaged(session, identity)
  if (record?.complete && record.groupAccess === 'grant' && record.group === stat.gid) return undefined
  if (!needsGroupWalk(session, root.handle, { groupId: group, ...GRANT }, identity)) return undefined
  refuseSystemGroup(session, { tree, clonedFrom }, group, rules, table)
  return { identity, group }
}

/** The walk of kubelet's fsGroup. */
export const GRANT = { access: 'grant', changePolicy: 'OnRootMismatch' } as const
