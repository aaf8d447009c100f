import { createMountRequest, findPodName } from '../../config/request.ts'
import { formatSource } from '../../config/source.ts'
import { CSI_TERMS, renderFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import { deferHandleClose } from '../../kernel/host.ts'
import type { SpaceUsage } from '../../kernel/inodes.ts'
import {
  type MountPoint,
  openMountPoint,
  resolveMountPointState,
  statMountPointUnsynced,
} from '../../kernel/mount-table/mount-point.ts'
import { isLocalMount, RESPONSE_TIMEOUT_MS } from '../../kernel/mount-table/responsiveness.ts'
import { findPathsToSameLocation } from '../../kernel/mount-table/tree-location.ts'
import { findMountState, isUnmountComplete } from '../../repair/heal.ts'
import { isFaultyState, type MountState } from '../../repair/state.ts'
import { createMountRecord, type MountRecord, mountRecords } from '../../state/mount-record.ts'
import { DamagedRecord } from '../../state/record.ts'
import type { Store } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'
import { statServedMount } from '../../volume/daemon.ts'
import { volumeKindLookup } from '../../volume/index.ts'
import { refuseGivenUpMount } from '../../worker/given-up.ts'
import { createFailureMessage, truncateEventMessage } from '../flexvolume/protocol.ts'
import { createCallSession, type VolumeCallContext } from '../flexvolume/volume-call.ts'
import { publishVolume, unpublishVolume } from './publish.ts'
import {
  CsiCallFailure,
  type CsiFailureCode,
  type CsiTask,
  type CsiTaskOutcome,
  createNotPublishedFailure,
  type VolumeStats,
} from './worker-tasks.ts'

/** Runs a task. Logs one line for it and one for each warning, as for FlexVolume's calls. Never throws. */
export async function runCsiTask(task: CsiTask, context: VolumeCallContext): Promise<CsiTaskOutcome> {
  const { log } = context
  try {
    if (task.do === 'stats') return { stats: await readVolumeStats(createCallSession(context), task.directory) }
    if (task.do === 'publish') log.note({ pod: findPodName(Object.entries(task.options)) })
    for (const fault of context.configFaults) log.warn(renderFault(fault), fault.code)
    if (task.do === 'publish') await runPublishTask(task, context)
    else {
      await unpublishVolume(createCallSession(context), task.directory, task.driver)
      log.end('Success')
    }
    return {}
  } catch (error) {
    // Kubelet may request stats of a pod that is being deleted.
    if (!(task.do === 'stats' && error instanceof CsiCallFailure)) log.end('Failure', error)
    return { failure: { code: findFailureStatusCode(error), message: formatFailureMessage(error) } }
  }
}

async function runPublishTask(task: Extract<CsiTask, { do: 'publish' }>, context: VolumeCallContext): Promise<void> {
  if (context.configFaults.length > 0) throw new Refusal(context.configFaults)
  const { directory, options, secrets, volumeId, lifecycle, isSingleWriter = false } = task
  const secretKeys = Object.keys(secrets)
  if (secretKeys.length > 0) context.forbidCoreDumps()
  const session = createCallSession(
    context,
    () => new Map(Object.entries(secrets).map(([key, value]) => [key, Buffer.from(value)])),
  )
  const request = convertRefusalToInvalidRequest(() =>
    createMountRequest(directory, { entries: Object.entries(options), secretKeys }, session.config, volumeKindLookup),
  )
  session.note({ pod: request.pod, source: formatSource(request.source) })
  refuseGivenUpMount(session, directory)
  const isRepeat = await publishVolume(session, { ...request, lifecycle, publication: { volumeId, isSingleWriter } })
  // Kubelet repeats each call about once a minute. Logging each repetition would rotate all other lines out of the log.
  if (!isRepeat) context.log.end('Success')
}

/**
 * Runs the parts of a publication that change nothing, so that their code is compiled and their schemas exist before the first
 * pod waits for them. It reads nothing of a volume.
 */
export function rehearsePublication({ host, config }: Store & Pick<Session, 'config'>): void {
  const entries = Object.entries({
    source: '/volume',
    'kubernetes.io/pod.name': 'p',
    'kubernetes.io/pod.namespace': 'n',
  })
  const request = createMountRequest('/pod', { entries, secretKeys: [] }, config, volumeKindLookup)
  const record = createMountRecord(request, host.bootId(), undefined)
  mountRecords.parse('', request.directory, mountRecords.serialize(record))
  findPathsToSameLocation(host.mounts.table(), '/')
  using point = openMountPoint(host, '/proc')
  if (point !== undefined) resolveMountPointState(host, point, statMountPointUnsynced(host, point))
}

/** Marks refusals of the author's options, which are no fault of the node or its configuration. */
function convertRefusalToInvalidRequest<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof Refusal ? new InvalidRequestRefusal(error) : error
  }
}

class InvalidRequestRefusal extends Refusal {
  constructor({ faults }: Refusal) {
    super(faults)
  }
}

function findFailureStatusCode(error: unknown): CsiFailureCode {
  if (error instanceof CsiCallFailure) return error.code
  if (error instanceof InvalidRequestRefusal) return 'INVALID_ARGUMENT'
  return error instanceof Refusal && !(error instanceof DamagedRecord) ? 'FAILED_PRECONDITION' : 'INTERNAL'
}

function formatFailureMessage(error: unknown): string {
  return error instanceof CsiCallFailure ? truncateEventMessage(error.message) : createFailureMessage(error, CSI_TERMS)
}

/** States in which the volume, or a former version of it, is mounted. */
const MOUNTED_STATES: ReadonlySet<MountState> = new Set(['healthy', 'changed', 'partial', 'stale', 'in progress'])

/**
 * Reads the state of a published volume, as status, heal and doctor do, and its usage. This process
 * never queries a file system that may be unresponsive.
 * @throws {CsiCallFailure} NOT_FOUND if modekeep has published nothing at the path
 */
async function readVolumeStats(session: Session, directory: string): Promise<VolumeStats> {
  using point = openMountPoint(session.host, directory)
  const found = point && (await findMountState(session, point.path))
  const { record } = point ? mountRecords.find(session, point.path) : {}
  if (!point || !found || (record && isUnmountComplete(record, found))) throw createNotPublishedFailure(directory)
  const { state, reason } = found
  const space = MOUNTED_STATES.has(state) && record ? await readVolumeSpaceUsage(session, point, record) : undefined
  return { space, trouble: isFaultyState(state) ? `${state}: ${reason}` : '' }
}

/** @returns undefined if the file system does not respond */
async function readVolumeSpaceUsage(
  session: Session,
  point: MountPoint,
  record: MountRecord,
): Promise<VolumeStats['space']> {
  const { inodes, daemons } = session.host
  const { stat, healthUnknownReason } = await statServedMount(session, point, record)
  if (healthUnknownReason !== undefined || stat === undefined || stat === 'broken') return undefined
  // `askServed` does not query a running daemon, but statfs(2) does, so its response is checked first.
  const isResponsive =
    isLocalMount(session.host, stat.mountId, point.path) ||
    (await daemons.answers(point.parent, point.name, RESPONSE_TIMEOUT_MS, `mount ${stat.mountId}`))
  if (!isResponsive) return undefined
  const root = inodes.openEntry(point.parent, point.name)
  using _ = deferHandleClose(inodes, root)
  const { bytes, inodes: files } = inodes.space(root)
  return { bytes: formatSpaceUsage(bytes), inodes: formatSpaceUsage(files) }
}

function formatSpaceUsage({ total, used, available }: SpaceUsage): Record<keyof SpaceUsage, string> {
  return { total: String(total), used: String(used), available: String(available) }
}
