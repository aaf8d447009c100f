import type { Host } from '../host/host.ts'
import { hasUserNamespace, podPlaceOf } from '../mount-table/kubelet-volume.ts'
import { hasGuard } from '../mount-table/layers.ts'
import { lookAt, type MountPoint, missingMountPoint, type Seen, statPoint } from '../mount-table/mount-point.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { hasOwnClone } from '../store/container-record.ts'
import { readWhileIdle } from '../store/locks.ts'
import { isOurs, type MountRecord } from '../store/mount-record.ts'
import { runningPlugin, whyNotAsked } from '../store/plugin-record.ts'
import type { Session } from '../store/session.ts'
import { type VolumeRecord, volumeRecords } from '../store/volume-record.ts'
import { statServed } from '../volume/daemon.ts'
import { readSourceView, type SourceView } from '../volume/detached-tree.ts'
import { mountsAgain, type OpenedSource, type VolumeKind } from '../volume/kind/kind.ts'

/** All that a plan is made from: what was observed, at one moment, under the lock. */
export interface MountView extends Seen {
  record: MountRecord | undefined
  /** Of the topmost mount, also where that does not respond. */
  mountId: bigint | undefined
  /** A daemon serves what is mounted, and nothing beneath keeps pods from writing to the node's disk. */
  needsGuard: boolean
  /** Undefined for kinds that have none. */
  source: SourceView | undefined
  boot: string
  /** Of the root of what is mounted. */
  shownGroup?: number | undefined
  /**
   * The pod has a user namespace, and the runtime itself maps this mount for it: no plugin of modekeep's replaces it by a
   * clone. Asked where a mapping is wanted or there.
   */
  isMappedByRuntime?: boolean
  /** Why the health of what is mounted is unknown. */
  healthUnknownReason?: string | undefined
  /**
   * The group a walk has given, or begun to give, the volume that the record speaks of; undefined: none is known, or a
   * call is at work on the volume, whose walk is not over and so not interrupted.
   */
  walked: VolumeRecord | undefined
}

/** Looks at everything a mount plan depends on. Call it under the mount's lock. */
export async function observe(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  point: MountPoint,
  source: OpenedSource | undefined,
  record: MountRecord | undefined,
): Promise<MountView> {
  const { host } = session
  const { stat, healthUnknownReason } = await statServed(session, point, record)
  if (healthUnknownReason !== undefined) session.warn(healthUnknownReason)
  // With a record: a call that crashed between removing kubelet's directory and making a file there left neither.
  if (stat === undefined && record === undefined) throw missingMountPoint(point.path)
  const seen = lookAt(host, point, stat)
  const boot = host.bootId()
  const isMapped = isOurs(record, { ...seen, boot }) && record.given.by === 'idmap'
  const isServed = kind.hasDaemon === true && seen.mounted !== undefined && seen.mounted !== 'broken'
  return {
    ...seen,
    needsGuard: isServed && !hasGuard(host, point.path),
    record,
    mountId: readMountId(host, point, seen),
    walked: record && readWalkedVolume(session, record),
    source: kind.persistent ? readSourceView(session, request, kind, source) : undefined,
    boot,
    shownGroup: stat === undefined || stat === 'broken' ? undefined : stat.gid,
    isMappedByRuntime: mayMap(request) && isMappedByRuntime(session, kind, point.path, isMapped),
    healthUnknownReason,
  }
}

function isMappedByRuntime(session: Session, kind: VolumeKind, path: string, isMapped: boolean): boolean {
  if (!hasUserNamespace(session.host, path)) return false
  if (!mountsAgain(kind)) return true
  // Without its plugin, as at an upgrade, its containers keep what they have.
  const isAway = whyNotAsked(runningPlugin(session)) !== undefined
  return isAway && !hasOwnClone(session, podPlaceOf(path)?.uid ?? '', isMapped)
}

function mayMap({ ownership, fsGroup }: MountRequest): boolean {
  return fsGroup !== undefined && (ownership === 'idmap' || ownership === 'auto')
}

/** That a daemon has died is learnt by asking it; the id of its mount the kernel tells without. */
function readMountId(host: Host, point: MountPoint, { mounted }: Seen): bigint | undefined {
  if (mounted !== 'broken') return mounted?.mountId
  const there = statPoint(host, point)
  return typeof there === 'object' && there.mountRoot ? BigInt(there.mountId) : undefined
}

function readWalkedVolume(session: Session, { given, volume }: MountRecord): VolumeRecord | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  const found = readWhileIdle(session, volume, () => volumeRecords.readUnlessDamaged(session, volume))
  return found === 'busy' ? undefined : found
}
