import type { MountRequest } from '../config/mount-request.ts'
import { formatSource } from '../config/source.ts'
import { createFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import type { VolumeKindFacts } from '../fsgroup/group-plan.ts'
import { isRecordedMountLive } from '../fsgroup/holders.ts'
import { deferHandleClose, type Handle, SystemError } from '../kernel/host.ts'
import { createMissingMountPointRefusal, type MountPoint, openMountPoint } from '../kernel/mount-table/mount-point.ts'
import { parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { forgetAfterReboot } from '../state/forget.ts'
import { isVolumeBusy } from '../state/lock-holders.ts'
import { acquireRecordLock, removeLeftoverRecordDirectory, tryAcquireRecordLock } from '../state/locks.ts'
import {
  type AppliedGroup,
  findRecordedMounts,
  isRecordedMount,
  type MountRecord,
  mountRecords,
} from '../state/mount-record.ts'
import { locateMountRecords, locatePublicationLock, locateVolumeRecords } from '../state/record-directories.ts'
import { type Session, warnOnFailure } from '../state/session.ts'
import { createDetachedTree } from '../volume/detached-tree.ts'
import { findVolumeKind } from '../volume/index.ts'
import { unmountStaleStages } from '../volume/kind/staged.ts'
import { assertSourceResponsive, needsIsolatedMount } from '../volume/unresponsive-source.ts'
import { runIsolatedWork } from '../worker/isolated.ts'
import { type MountPlanInput, observeMount } from './observe.ts'
import { permitMountRequest, permitOpenedSource } from './permission.ts'
import { type MountPlan, planMount } from './plan.ts'
import { planSubmounts } from './submounts.ts'

// An AtomicWriter may delete the source just before it is attached.
const MIN_MOUNT_ATTEMPTS = 10
/** Duration of further attempts. On a busy node an attempt may take longer than an alternating source exists. */
const MIN_MOUNT_RETRY_MS = 2000

/** A record may name a kind that this version lacks. */
const UNKNOWN_VOLUME_KIND: VolumeKindFacts = { persistent: false, walk: 'nothing is known' }

/**
 * Mounts the requested source at the request's directory; a repeated call changes nothing. Afterwards the directory shows
 * the complete mount or, if an error is thrown, its former content.
 * @param prepare is called under the mount's lock, before the first check
 * @returns how the group was applied, and which mounts the pod does not see
 * @throws {Refusal} with a message for the pod's author; any other error is a system error
 */
export async function mountPodVolume(
  session: Session,
  request: MountRequest,
  prepare: (point: MountPoint) => void = () => {},
): Promise<MountResult> {
  using point = openMountPoint(session.host, request.directory)
  if (point === undefined) throw createMissingMountPointRefusal(request.directory)
  forgetAfterReboot(session)
  unmountStaleStages(session)
  // Kubelet never unmounts a mount that failed, so nothing of it may remain.
  using _lock = await acquireRecordLock(session, locateMountRecords(session, point.path))
  prepare(point)
  const { plan, given, hiddenSubmounts } = await mountPodVolumeLocked(
    session,
    { ...request, directory: point.path },
    point,
  )
  return { ...given, ...(hiddenSubmounts && { hiddenSubmounts }), ...(plan.decision === 'ready' && { wasReady: true }) }
}

/**
 * Calls `mount`, in an isolated process if a server or a daemon must respond: one that has responded may hang at the
 * next request.
 * @throws {Refusal} as `mount` does; other system errors keep only their message
 */
export function mountPodVolumeIsolated(session: Session, request: MountRequest): Promise<MountResult> {
  if (!needsIsolatedMount(session, request)) return mountPodVolume(session, request)
  const what = formatSource(request.source)
  return runIsolatedWork(session, {
    work: 'mount',
    about: request,
    secrets: findVolumeKind(request.fsType)?.usesSecrets ? session.secrets : undefined,
    givenUp: (seconds, waiting) =>
      createFault(
        'unresponsive-call',
        `${what === undefined ? `the server of this ${request.fsType}` : `source ${quoteValue(what)}`} does not respond any more, so the call was given up after ${seconds} s (the server or the daemon of its file system hangs)`,
        `repair that on the node, and kubelet's next call goes on${waiting}`,
      ),
  })
}

/** Runs `mount` in the isolated process. */
export function runMountTask(session: Session, _: Handle, request: MountRequest): Promise<MountResult> {
  return mountPodVolume(session, request)
}

export type MountResult = AppliedGroup & {
  /** Names the mounts inside of the source that the pod does not see; undefined: there are none. */
  hiddenSubmounts?: string | undefined
  /** An earlier call had mounted the volume, and this one has changed nothing or has completed it. */
  wasReady?: true
}

interface MountOutcome {
  plan: MountPlan
  given: AppliedGroup
  hiddenSubmounts: string | undefined
  healthUnknownReason: string | undefined
  /** The volume's record before the call, if a walk was recorded; undefined also while another call uses the volume. */
  walked: MountPlanInput['walked']
  shownGroup: number | undefined
  /** Nothing was done, because another call uses the volume. */
  isInProgress?: boolean
}

/**
 * `isDry` only plans. `finishes` only completes an existing mount. `isHealing` keeps the record if the mount fails, and
 * does not wait for another call that uses the volume.
 */
type MountMode = { isDry?: boolean; finishes?: boolean; isHealing?: boolean }

/** Like `mount`, for a caller that has the mount's lock. The request's `directory` is the point's real path. */
export async function mountPodVolumeLocked(
  session: Session,
  request: MountRequest,
  point: MountPoint,
  mode: MountMode = {},
): Promise<MountOutcome> {
  const until = performance.now() + MIN_MOUNT_RETRY_MS
  for (let attempt = 1; attempt <= MIN_MOUNT_ATTEMPTS || performance.now() < until; attempt++) {
    try {
      return await tryMountOnce(session, request, point, mode)
    } catch (error) {
      const isDeleted = error instanceof SystemError && error.syscall === 'move_mount' && error.code === 'ENOENT'
      if (!isDeleted) throw error
    }
  }
  throw Refusal.of(
    'source-changed',
    `source ${quoteValue(formatSource(request.source))} was deleted repeatedly while it was being mounted`,
    'stop what replaces it',
  )
}

async function tryMountOnce(
  session: Session,
  requested: MountRequest,
  point: MountPoint,
  mode: MountMode,
): Promise<MountOutcome> {
  const { host } = session
  const kind = findVolumeKind(requested.fsType)
  if (!kind) throw new Error(`no such kind: ${requested.fsType}`)
  const last = mountRecords.readUnlessDamaged(session, point.path)
  const record = last?.ended === undefined ? last : undefined
  const { request: permitted, isNew } = permitMountRequest(session, requested, kind, record)
  // heal has checked the source already, without the lock.
  if (!mode.isHealing) await assertSourceResponsive(session, permitted)
  const source = kind.openSource?.(host, permitted)
  using _ = deferHandleClose(host.inodes, source?.handle)
  const request = isNew && source !== undefined ? permitOpenedSource(session, permitted, kind, source) : permitted
  const view = await observeMount(session, request, kind, point, source, record)
  const plan = planMount(request, view, (fsType) => findVolumeKind(fsType) ?? UNKNOWN_VOLUME_KIND, mode.isHealing)
  session.note({ decision: plan.decision, reason: plan.reason, steps: plan.steps.map((step) => step.do) })
  if (plan.decision === 'refuse') throw new Refusal(plan.fault ?? [])
  const { healthUnknownReason, walked, shownGroup } = view
  const { given: recorded = { by: 'none' } as const, hiddenSubmounts } = view.record ?? {}
  const before = { plan, given: recorded, hiddenSubmounts, healthUnknownReason, walked, shownGroup }
  const volume = view.source?.volume ?? view.record?.volume
  const needsVolume = plan.steps.some((step) => ['own-root', 'own-volume', 'map-group'].includes(step.do))
  if (mode.isHealing && needsVolume && volume !== undefined && isVolumeBusy(session, volume)) {
    return { ...before, isInProgress: true }
  }
  if (mode.finishes && plan.decision !== 'ready') return before
  // A mount without a readable record may be the one that the pod uses, and is not refused.
  const isFirst = isNew && (view.mounted === undefined || record !== undefined)
  const submounts = plan.decision === 'ready' ? {} : await planSubmounts(session, request, kind, source, isFirst)
  if (mode.isDry) return before
  // An existing mount with no step left needs none of the following.
  if (plan.steps.length === 0) return before
  const isPublished = plan.decision === 'ready' || isRecordedMount(view.record, view)
  const held = isPublished
    ? undefined
    : await lockSingleWriterVolume(session, request, view.source?.volume, !mode.isHealing)
  if (held === 'busy') return { ...before, isInProgress: true }
  using _held = held
  const { runMountPlan: runPlan } = await import('./run.ts')
  const given = await runPlan(session, point, createDetachedTree(session, kind, request, source, submounts), plan.steps)
  if (plan.decision === 'ready') return before
  // An interrupted call may have begun with another volume.
  const former = view.record?.volume
  if (former !== undefined && former !== view.source?.volume) {
    const place = locateVolumeRecords(session, former)
    // The mount is attached, so leftovers of another volume must not fail it.
    warnOnFailure(session, `could not remove the leftovers of volume ${former}`, () =>
      removeLeftoverRecordDirectory(session, place),
    )
  }
  if (given.why !== undefined) session.note({ given: given.by, why: given.why })
  return { plan, given, hiddenSubmounts: submounts.hidden, healthUnknownReason: undefined, walked, shownGroup }
}

/**
 * Locks a volume that only one target may show, until its mount is attached. Concurrent publications of one volume wait for
 * each other here, so the later one sees the mount of the earlier one.
 * @param volume the identity of the mounted volume; undefined if only its mount has one
 * @param isPatient if false, returns 'busy' if another call has the lock
 * @returns undefined if any number of targets is allowed
 * @throws {Refusal} that names the target that shows the volume
 */
async function lockSingleWriterVolume(
  session: Session,
  { directory, publication }: MountRequest,
  volume: string | undefined,
  isPatient: boolean,
): Promise<Disposable | 'busy' | undefined> {
  if (!publication?.isSingleWriter) return undefined
  const place = locatePublicationLock(session, volume === undefined ? `id:${publication.volumeId}` : `volume:${volume}`)
  const held = isPatient ? await acquireRecordLock(session, place) : tryAcquireRecordLock(session, place)
  if (held === undefined) return 'busy'
  const holder = findVolumePublications(session, publication.volumeId, volume).find(
    (record) => record.directory !== directory,
  )
  if (holder === undefined) return held
  held[Symbol.dispose]()
  throw Refusal.of(
    'csi-single-writer',
    `volume ${quoteValue(publication.volumeId)} is published at ${holder.directory} (pod ${holder.pod ?? 'unknown'}), and its access mode SINGLE_NODE_SINGLE_WRITER (ReadWriteOncePod) allows one target`,
    'delete that pod, or use another access mode',
  )
}

function findVolumePublications(session: Session, volumeId: string, volume: string | undefined): MountRecord[] {
  const points = new Set(parseMountinfo(session.host.mounts.table()).map(({ mountPoint }) => mountPoint))
  return findRecordedMounts(session, points).flatMap(({ record }) => {
    if (record?.lifecycle === undefined) return []
    const isSame = record.publication?.volumeId === volumeId || (volume !== undefined && record.volume === volume)
    return isSame && isRecordedMountLive(session, record) ? [record] : []
  })
}
