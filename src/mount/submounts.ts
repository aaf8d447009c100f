import type { MountRequest } from '../config/mount-request.ts'
import { parseSource } from '../config/source.ts'
import { createOptionFault, type Fault, OPTION_TERM_PLACEHOLDER, prefixFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, isDirectory } from '../kernel/host.ts'
import { parseVolumePod } from '../kernel/mount-table/kubelet-volume.ts'
import type { MountRow } from '../kernel/mount-table/mountinfo.ts'
import { createUnresponsiveFault, isUnresponsivePath } from '../kernel/mount-table/responsiveness.ts'
import { formatMountList, readSubmounts } from '../kernel/mount-table/submounts.ts'
import type { Session } from '../state/session.ts'
import type { PlannedSubmounts } from '../volume/detached-tree.ts'
import type { OpenedSource, VolumeKind } from '../volume/kind/kind.ts'
import { openSourceWithoutLinks } from '../volume/kind/source-path.ts'
import { isInternalMount } from '../volume/second-paths.ts'
import { applyAllowRules, permitOpenedSource } from './permission.ts'

/**
 * Decides which mounts inside of a source the pod sees, before the source is mounted.
 * @param isNew nothing is mounted for the request yet: only then may it be refused for a mount that it would hide
 * @throws {Refusal} if the pod would not see a mount, could write beneath it, and did not request that; or if it requests
 * mounts that no rule allows as its sources
 */
export async function planSubmounts(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  source: OpenedSource | undefined,
  isNew: boolean,
): Promise<PlannedSubmounts> {
  if (source === undefined || kind.root !== 'source' || !isDirectory(source.stat)) return {}
  const rows = readSubmounts(session.host, source.handle, source.path)
  const kubeletDirectory = parseVolumePod(request.directory)?.root
  const { internal = [], others = [] } = Object.groupBy(rows, (row) =>
    isInternalMount(session, row, kubeletDirectory) ? 'internal' : 'others',
  )
  if (request.submounts === 'include') {
    await assertSubmountsAllowed(session, request, kind, source, { internal, others })
    return { included: new Set(rows.map(({ id }) => id)) }
  }
  if (others.length === 0) return {}
  const isRefused = request.submounts === 'refuse' || (request.submounts === undefined && !request.readOnly)
  if (isNew && isRefused) {
    throw Refusal.of(
      'submounts-hidden',
      `source ${quoteValue(source.path)} has mounts inside that the pod would not see: ${formatMountList(others)}`,
      `set ${OPTION_TERM_PLACEHOLDER} "submounts" to "hide", or to "include" where a rule of the node allows that, or name such a mount as the source`,
    )
  }
  const hidden = `mounts inside of source ${quoteValue(source.path)} are hidden from the pod: ${formatMountList(others)}`
  session.note({ submounts: hidden })
  return { hidden }
}

/** Makes the fault of a mount inside of the source one of option "submounts". */
function toSubmountsFault(fault: Fault, prefix: string): Fault {
  const { reason, remedy, cause } = prefixFault(fault, `is "include", but ${prefix}`)
  return createOptionFault('option-contradiction', 'submounts', reason, remedy, cause)
}

/** @throws {Refusal} for the first mount that the rules do not allow as the pod's source, or that cannot be cloned */
async function assertSubmountsAllowed(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  { path }: OpenedSource,
  { internal, others }: { internal: readonly MountRow[]; others: readonly MountRow[] },
): Promise<void> {
  const refuse = (reason: string, remedy: string) =>
    new Refusal(createOptionFault('option-contradiction', 'submounts', `is "include", but ${reason}`, remedy))
  const refuseMount = (faults: readonly Fault[], prefix = '') =>
    new Refusal(faults.map((fault) => toSubmountsFault(fault, prefix)))
  if (internal.length > 0) {
    const reason = `source ${quoteValue(path)} has mounts of kubelet or modekeep inside, which no pod may see`
    throw refuse(`${reason}: ${formatMountList(internal)}`, 'name a source without them')
  }
  const unbindable = others.filter(({ propagation }) => propagation.includes('unbindable'))
  if (unbindable.length > 0) {
    throw refuse(`the kernel does not clone unbindable mounts: ${formatMountList(unbindable)}`, 'make them private')
  }
  for (const { mountPoint } of others) {
    const submountRequest = { ...request, source: parseSource(mountPoint), subPath: undefined, submounts: undefined }
    const faults = kind.faults(submountRequest, session.config)
    if (faults.length > 0) throw refuseMount(faults, `${quoteValue(mountPoint)} cannot be a source: `)
    const verdict = applyAllowRules(session, submountRequest, kind)
    if ('refusal' in verdict) throw refuseMount([verdict.refusal])
    if (await isUnresponsivePath(session, mountPoint))
      throw refuseMount([createUnresponsiveFault(quoteValue(mountPoint), 'mount it again')])
    const handle = openSourceWithoutLinks(session.host, mountPoint, {})
    using _ = deferHandleClose(session.host.inodes, handle)
    const stat = session.host.inodes.statMountPoint(handle)
    permitOpenedSource(session, submountRequest, kind, { handle, stat, path: mountPoint })
  }
}
