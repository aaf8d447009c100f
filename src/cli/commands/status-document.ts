import type { FaultCode } from '../../errors/entries/index.ts'
import { deferHandleClose, getErrno } from '../../kernel/host.ts'
import { createPathLookups, type PathLookups } from '../../kernel/mount-table/responsiveness.ts'
import { healMounts, isUnmountComplete } from '../../repair/heal.ts'
import type { MountFinding } from '../../repair/state.ts'
import { listRecordedMounts, type MountRecord } from '../../state/mount-record.ts'
import { findRunningPlugin } from '../../state/process-records.ts'
import { listVolumesWithRecords } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'
import { explainOtherDisk } from '../../state/volume-disk.ts'
import { findVolumeNameNotice } from '../../state/volume-notices.ts'
import { explainUserChanges, type SkippedInodes, volumeRecords } from '../../state/volume-record.ts'
import { findMountDaemon, isDaemonStopped } from '../../volume/daemon.ts'
import { type ContainerStatus, findUnenforcedMountOptions, readContainerStatuses } from '../node-state/containers.ts'
import { findHiddenMounts, type HiddenMounts } from '../node-state/hidden-mounts.ts'
import { findJournalFault, readRunningWalk, type WalkStatus } from '../node-state/recorded-walk.ts'

export interface StatusCommand {
  verb: 'status'
  /** Metrics are printed instead of the status, to stdout or to this file. */
  metrics: { output: string | undefined } | undefined
  /** Undefined: everything. */
  selection?: StatusSelection | undefined
  /** Output format; undefined: the table. */
  form?: 'json' | 'yaml' | 'wide' | 'name' | undefined
  isWatching?: boolean
}

/** Selects the mounts and volumes to report: those that match both fields. */
export interface StatusSelection {
  namespace: string | undefined
  /** A mount directory; a pod: NAMESPACE/NAME, a name or a UID; or the beginning of a volume's name. */
  of: { directory: string } | { pod: string } | { word: string } | undefined
}

export interface StatusDocument {
  verb: 'status'
  mounts: MountStatus[]
  volumes: VolumeStatus[]
  /** Containers that requested a group for a volume of any driver, with or without success. */
  containers: ContainerStatus[]
  /** Mount directories of running pods whose records are lost, and the consequence. */
  unrecorded: { directory: string; reason: string }[]
  /** Mount directories whose records are damaged or have another version's format. No call removes such records. */
  unreadable: { directory: string; fault: string }[]
}

/** A volume that modekeep keeps records of. */
export interface VolumeStatus {
  volume: string
  /** The directory where the volume was walked; '' if its record cannot be read. */
  source: string
  /** The group that the last walk applied; null if unknown. */
  group: number | null
  groupAccess: 'keep' | 'grant' | null
  /** False: a walk or a restore was not finished or skipped directories, or the volume was restored (`left`). */
  complete: boolean
  /** Inodes that a restore skipped because users had changed them; null: no restore was completed since the last walk. */
  left: number | null
  /** The volume's last unmount, or `restore`, will restore it. */
  restorePending: boolean
  /** Later changes that may lock the group out, and the remedy; null: none. */
  changed: string | null
  /** Number of inodes with the group, and reasons for skipped ones; null: the last walk skipped none. */
  skipped: SkippedInodes | null
  /** Notice if the records use the name that another kernel gives the volume; null: they do not. */
  name: string | null
  /** Number of the volume's recorded mounts. */
  mounts: number
  /** Fault of the record or the journal; null: both can be used. */
  fault: string | null
  walk: WalkStatus | null
}

export interface MountStatus {
  directory: string
  /** The volume's identity; '' if the volume ends with the mount. */
  volume: string
  /** NAMESPACE/NAME of the pod; '' if kubelet passed none. */
  pod: string
  /** The mounted source, including a subPath as resolved at mount time; '' for a tmpfs. */
  source: string
  fsType: string
  readOnly: boolean
  /** The pod's fsGroup. */
  group: number | null
  /** How the group was applied; `why` is the reason. */
  ownership: 'none' | 'walk' | 'idmap' | 'option'
  why: string
  /** Mount time in ISO 8601. */
  since: string | null
  /** The state that `heal` would find, and the reason. */
  state: MountFinding['state']
  reason: string
  /** The code of the reason; null: no entry describes it. */
  code: FaultCode | null
  /** The action that `heal` would take. `failed`: it cannot repair the mount, and `reason` names the remedy. */
  repair: MountFinding['action']
  /** The running walk or restore of the volume. */
  walk: WalkStatus | null
  /** Mount options that the pod's containers may lack, because nothing passes them to the container runtime. */
  unenforced: string[]
  /** Mounts inside the source that the pod does not see, including later ones; null: none. */
  hiddenSubmounts: HiddenMounts | null
  /** The process that serves the mount; null: the volume has no daemon. The daemon is never queried. */
  daemon: { pid: number | null; state: 'alive' | 'stopped' | 'dead' } | null
}

/** Reads the state of all mounts and volumes that modekeep has records of. Changes nothing. */
export async function readNodeStatus(session: Session): Promise<StatusDocument> {
  const findings = new Map((await healMounts(session, true)).map((finding) => [finding.directory, finding]))
  const recorded = listRecordedMounts(session)
  const lookups = createPathLookups(session)
  const records = recorded.flatMap(({ record }) => record ?? [])
  const hidden = findHiddenMounts(session, records)
  const hasPlugin = findRunningPlugin(session)?.isRegistered === true
  const mounts = records.flatMap((record) => {
    const found = findings.get(record.directory)
    if (found === undefined || isUnmountComplete(record, found)) return []
    const hiddenSubmounts = hidden.get(record.directory) ?? null
    const { state, reason, code = null, action: repair } = found
    return [{ ...createMountStatus(session, record, hasPlugin), hiddenSubmounts, state, reason, code, repair }]
  })
  const unrecorded = [...findings.values()].filter(({ code }) => code === 'mount-unrecorded')
  return {
    verb: 'status',
    unrecorded: unrecorded.map(({ directory, reason }) => ({ directory, reason })),
    mounts: mounts.sort((one, other) => (one.directory < other.directory ? -1 : 1)),
    volumes: await Promise.all(
      listVolumesWithRecords(session).map((volume) => readVolumeStatus(session, volume, records, lookups)),
    ),
    containers: readContainerStatuses(session),
    unreadable: recorded.flatMap(({ directory, problem }) => (problem ? [{ directory, fault: problem.message }] : [])),
  }
}

async function readVolumeStatus(
  session: Session,
  volume: string,
  records: readonly MountRecord[],
  lookups: PathLookups,
): Promise<VolumeStatus> {
  const { record, problem } = volumeRecords.find(session, volume)
  const walk = readRunningWalk(session, volume)
  return {
    volume,
    source: record?.source ?? '',
    group: record?.group ?? null,
    groupAccess: record?.groupAccess ?? null,
    complete: record?.complete ?? false,
    left: record?.left ?? null,
    restorePending: record?.restorePending ?? false,
    changed: (record && explainUserChanges(record)) ?? null,
    skipped: record?.skipped ?? null,
    name: (record && (await findVolumeNameNotice(session, record, lookups)))?.text ?? null,
    mounts: (await findVolumeMounts(session, volume, records, lookups)).length,
    // During a walk the journal is not checked: the walking process detects its faults.
    fault: problem?.message ?? (walk === null ? findJournalFault(session, volume) : undefined) ?? null,
    walk,
  }
}

function createMountStatus(
  session: Session,
  record: MountRecord,
  hasPlugin: boolean,
): Omit<MountStatus, 'hiddenSubmounts' | 'state' | 'reason' | 'code' | 'repair'> {
  const { directory, volume = '', pod = '', source = '', given, mounted, request } = record
  const walk = record.volume === undefined ? null : readRunningWalk(session, record.volume)
  // The record gets its group only once the group has been applied.
  const isGiven = mounted !== undefined || given.by !== 'none' || walk === null
  return {
    directory,
    volume,
    pod,
    source,
    fsType: request.fsType,
    readOnly: request.readOnly,
    group: request.fsGroup ?? null,
    ownership: isGiven ? given.by : 'walk',
    why: isGiven ? (given.why ?? '') : 'under way',
    since: mounted === undefined ? null : new Date(mounted.since).toISOString(),
    walk,
    unenforced: findUnenforcedMountOptions(session, record, hasPlugin),
    daemon: readDaemonStatus(session, record),
  }
}

/** Reads the process table. The daemon itself is never queried, because it may be unresponsive. */
function readDaemonStatus(session: Session, record: MountRecord): MountStatus['daemon'] {
  if (record.staging === undefined) return null
  const daemon = findMountDaemon(session, record, record.staging)
  if (daemon === undefined) return { pid: null, state: 'dead' }
  return { pid: daemon.pid, state: isDaemonStopped(daemon) ? 'stopped' : 'alive' }
}

/** Finds the mounts of a volume. A copy on another disk has the same identity, but its mounts are excluded. */
export async function findVolumeMounts(
  session: Session,
  volume: string,
  records: readonly MountRecord[],
  lookups: PathLookups,
): Promise<MountRecord[]> {
  const mounts = records.filter((mount) => mount.volume === volume && mount.ended === undefined)
  const isCopy = new Map<number, boolean>()
  for (const { directory, mounted } of mounts) {
    if (mounted === undefined || isCopy.has(mounted.device)) continue
    isCopy.set(mounted.device, await isVolumeOnOtherDisk(session, volume, directory, lookups))
  }
  return mounts.filter(({ mounted }) => mounted === undefined || !isCopy.get(mounted.device))
}

async function isVolumeOnOtherDisk(
  session: Session,
  volume: string,
  directory: string,
  lookups: PathLookups,
): Promise<boolean> {
  try {
    const handle = await lookups.open(directory)
    using _ = deferHandleClose(session.host.inodes, handle)
    return handle !== undefined && explainOtherDisk(session, volume, handle) !== undefined
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return false
  }
}
