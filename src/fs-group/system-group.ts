import { snapshotTable } from '../mount-table/table-snapshot.ts'
import { isInRanges } from '../request/rule.ts'
import type { SystemGroupRule } from '../request/system-group-rule.ts'
import type { Session } from '../store/session.ts'
import { Unmappable } from './map-group.ts'
import { findUnprivilegedPath, type MountedTree } from './unprivileged-path.ts'

/** Debian and the LSB give lower ids to groups of the system (login.defs, GID_MIN). */
const FIRST_USER_GROUP = 1000

/** Returns whether a rule forbids that a pod is shown a group on disk as its own. */
function isProtected(group: number, { systemGroups, protectedGroups = [] }: SystemGroupRule): boolean {
  return !systemGroups && (group < FIRST_USER_GROUP || isInRanges(protectedGroups, group))
}

/**
 * Refuses to map a group of the system in a volume that users of the node reach. A pod that sees the group as its own
 * can create an executable with set-gid. On the node, the executable runs with the group on disk for every user. An
 * fsGroup grants less, because the group on disk is the same as in the pod.
 * @param group on disk
 * @param rules that allow the mapping; one that permits the group is enough
 * @throws {Unmappable}
 */
export function refuseSystemGroup(
  session: Session,
  volume: MountedTree,
  group: number,
  rules: readonly SystemGroupRule[],
  table = snapshotTable(session.host),
): void {
  if (!rules.every((rule) => isProtected(group, rule))) return
  const { host } = session
  // No file can be created through a read-only mount.
  if (host.inodes.isReadOnly(volume.tree)) return
  const path = findUnprivilegedPath(host, volume, table)
  if (path === undefined) return
  session.note({ systemGroup: { group, path } })
  throw new Unmappable(
    `its group on disk is ${group}, a group of the system, and users of the node reach the volume through a mount without nosuid, ` +
      'so an executable that the pod makes could run with that group: give the volume another group on the node, mount it with nosuid, ' +
      'close a directory above it to others, or have a rule of the node say "systemGroups": true',
  )
}
