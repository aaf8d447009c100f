import { Refusal } from '../errors/refusal.ts'
import type { Handle, Stat } from '../host/host.ts'
import { computeGroupBits, readAcl } from '../ownership/inode/attributes.ts'
import { type GroupPolicy, matchesPolicy } from '../ownership/inode/policy.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import type { Session } from '../store/session.ts'
import { formatApplyCommand, formatSkipped, type SkippedInodes } from '../store/volume-record.ts'

/** Parts of an order that concern the root of the volume. */
interface RootOrder extends GroupPolicy {
  volume: string
  source: string
  /** Undefined for `apply` by hand. */
  directory?: string
  /** A mount of the pod exists already. */
  isMounted?: boolean | undefined
}

const READ_WRITE_SEARCH = 0o7
const REMEDY =
  'remove the cause ("chattr -i -a" where lsattr -d shows one of these attributes, room in the quota, "no_root_squash" of an NFS export), or use ownership "idmap" or "none"'

/** Returns whether the call may fail: `apply` by hand reports instead, and an existing mount stays. */
const isNewMount = ({ directory, isForced, isMounted }: RootOrder): boolean =>
  directory !== undefined && !isForced && !isMounted

/** Called before a walk, which would change all other inodes first. @throws {Refusal} for a new mount */
export function refuseImmutable({ host: { inodes } }: Session, tree: Handle, order: RootOrder): void {
  const root = inodes.stat(tree)
  if (!isNewMount(order) || !root.immutable || matchesPolicy(root, order)) return
  throw Refusal.of('group-not-applied', formatRejection(order, root, 'it is immutable or append-only'))
}

/** Called after a walk. @throws {Refusal} for a new mount whose root does not have the group */
export function refuseOtherGroup(session: Session, tree: Handle, order: RootOrder, { root: reason }: WalkReport): void {
  const root = session.host.inodes.stat(tree)
  if (!isNewMount(order) || (root.gid === order.group && reason === undefined)) return
  throw Refusal.of('group-not-applied', formatRejection(order, root, reason ?? 'its file system ignores the change'))
}

function formatRejection({ group, source }: RootOrder, { gid }: Stat, reason: string): string {
  return `group ${group} cannot be applied to the root of ${source}, which has group ${gid}: ${reason}: ${REMEDY}`
}

/**
 * Checks a root that was changed since modekeep applied the group to it. The walk skips it, and its owner's decision is
 * accepted where the pod's group can still use the volume.
 * @throws {Refusal} for a new mount whose group cannot read, write and search the root
 */
export function refuseUnusable(
  session: Session,
  tree: Handle,
  order: RootOrder,
  skipped: SkippedInodes | undefined,
): void {
  const { inodes } = session.host
  const root = inodes.stat(tree)
  const { group, source, access } = order
  if (!isNewMount(order) || isPrivateToOwner(root, group)) return
  const bits = computeGroupBits(root, readAcl(inodes, tree), group)
  if ((bits & READ_WRITE_SEARCH) === READ_WRITE_SEARCH) return
  const counts = skipped === undefined ? '' : ` (${formatSkipped(group, skipped)})`
  const mode = (root.mode & 0o7777).toString(8).padStart(4, '0')
  throw Refusal.of(
    'group-changed',
    `the root of ${source} was changed since modekeep applied the pod's group: it is ${root.uid}:${root.gid} ${mode} now, ` +
      `so group ${group} cannot read, write and search it${counts}`,
    `${formatApplyCommand({ ...order, groupAccess: access })} applies the group to the whole volume again`,
  )
}

/** Returns whether a pod's user made the root private, as a database server does with its data directory: 0700. */
function isPrivateToOwner({ uid, gid, mode }: Stat, group: number): boolean {
  return uid !== 0 && gid === group && (mode & 0o777) === 0o700
}
