import type { MountRequest } from '../config/mount-request.ts'
import type { Host } from '../kernel/host.ts'
import { hasPodUserNamespace, parseVolumePod } from '../kernel/mount-table/kubelet-volume.ts'
import {
  createMissingMountPointRefusal,
  type MountPoint,
  type MountPointState,
  resolveMountPointState,
  statMountPointUnsynced,
} from '../kernel/mount-table/mount-point.ts'
import { hasGuardMount } from '../kernel/mount-table/mountinfo.ts'
import { hasRunningContainerClone } from '../state/container-record.ts'
import { readWhileVolumeIdle } from '../state/lock-holders.ts'
import { isRecordedMount, type MountRecord } from '../state/mount-record.ts'
import { explainInactivePlugin, findRunningPlugin } from '../state/process-records.ts'
import type { Session } from '../state/session.ts'
import { type VolumeRecord, volumeRecords } from '../state/volume-record.ts'
import { statServedMount } from '../volume/daemon.ts'
import { readSourceView, type SourceView } from '../volume/detached-tree.ts'
import { canRemountSameContent, type OpenedSource, type VolumeKind } from '../volume/kind/kind.ts'

/** The complete input of a mount plan, observed at one moment under the lock. */
export interface MountPlanInput extends MountPointState {
  record: MountRecord | undefined
  /** The id of the topmost mount, also if that does not respond. */
  mountId: bigint | undefined
  /** A daemon serves the mount, and no guard beneath it keeps pods from writing to the node's disk. */
  needsGuard: boolean
  /** Undefined for kinds without a source. */
  source: SourceView | undefined
  boot: string
  shownGroup?: number | undefined
  /**
   * The pod has a user namespace, and the runtime itself maps this mount: modekeep's plugin does not replace it by a clone.
   * Checked only if a mapping is requested or exists.
   */
  isMappedByRuntime?: boolean
  healthUnknownReason?: string | undefined
  /**
   * The record of the volume's last walk, complete or interrupted. Undefined if no walk is recorded, or while another call
   * uses the volume: its walk is running and not interrupted.
   */
  walked: VolumeRecord | undefined
}

/** Collects everything that a mount plan depends on. Must be called under the mount's lock. */
export async function observeMount(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  point: MountPoint,
  source: OpenedSource | undefined,
  record: MountRecord | undefined,
): Promise<MountPlanInput> {
  const { host } = session
  const { stat, healthUnknownReason } = await statServedMount(session, point, record)
  if (healthUnknownReason !== undefined) session.warn(healthUnknownReason, 'unresponsive')
  // With a record, a call may have crashed between removing kubelet's directory and creating a file there.
  if (stat === undefined && record === undefined) throw createMissingMountPointRefusal(point.path)
  const seen = resolveMountPointState(host, point, stat)
  const boot = host.bootId()
  const isMapped = isRecordedMount(record, { ...seen, boot }) && record.given.by === 'idmap'
  const { ownership, fsGroup } = request
  const isMapRequested = fsGroup.groupId !== undefined && (ownership === 'idmap' || ownership === 'auto')
  const isServed = kind.hasDaemon === true && seen.mounted !== undefined && seen.mounted !== 'broken'
  return {
    ...seen,
    needsGuard: isServed && !hasGuardMount(host, point.path),
    record,
    mountId: readMountId(host, point, seen),
    walked: record && readWalkedVolumeRecord(session, record),
    source: kind.persistent ? readSourceView(session, request, kind, source) : undefined,
    boot,
    shownGroup: stat === undefined || stat === 'broken' ? undefined : stat.gid,
    isMappedByRuntime: isMapRequested && isVolumeMappedByRuntime(session, kind, point.path, isMapped),
    healthUnknownReason,
  }
}

function isVolumeMappedByRuntime(session: Session, kind: VolumeKind, path: string, isMapped: boolean): boolean {
  if (!hasPodUserNamespace(session.host, path)) return false
  if (!canRemountSameContent(kind)) return true
  // Containers keep their clones while the plugin is not running, as at an upgrade.
  const isAway = explainInactivePlugin(findRunningPlugin(session)) !== undefined
  return isAway && !hasRunningContainerClone(session, parseVolumePod(path)?.uid ?? '', isMapped)
}

/** The kernel returns a mount's id without a request to its daemon, so a mount whose daemon died has one too. */
function readMountId(host: Host, point: MountPoint, { mounted }: MountPointState): bigint | undefined {
  if (mounted !== 'broken') return mounted?.mountId
  const there = statMountPointUnsynced(host, point)
  return typeof there === 'object' && there.mountRoot ? BigInt(there.mountId) : undefined
}

function readWalkedVolumeRecord(session: Session, { given, volume }: MountRecord): VolumeRecord | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  const found = readWhileVolumeIdle(session, volume, () => volumeRecords.readUnlessDamaged(session, volume))
  return found === 'busy' ? undefined : found
}
