import { isOver, LOST } from '../../heal/find-state.ts'
import { healMounts } from '../../heal/heal.ts'
import type { Finding } from '../../heal/state.ts'
import { type PathLookups, pathLookups } from '../../mount-table/path-lookups.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import { nameNotice } from '../../store/former-name.ts'
import { listMounts, type MountRecord } from '../../store/mount-record.ts'
import { listVolumes } from '../../store/places.ts'
import { runningPlugin } from '../../store/plugin-record.ts'
import type { Session } from '../../store/session.ts'
import type { SkippedInodes } from '../../store/skipped-inodes.ts'
import { changeOf, volumeRecords } from '../../store/volume-record.ts'
import { findDaemon, isStopped } from '../../volume/daemon.ts'
import { type ContainerStatus, readContainerStatuses } from './containers.ts'
import { findHiddenMounts, type HiddenMounts } from './hidden-mounts.ts'
import { findUnenforcedOptions } from './mount-options.ts'
import { isVolumePrefix, resolveVolumeName } from './target.ts'
import { findJournalFault, readRunningWalk, type WalkStatus } from './volume.ts'
import { findVolumeMounts } from './volume-mounts.ts'

export interface StatusCommand {
  verb: 'status'
  /** They are wanted instead: on stdout, or in this file. */
  metrics: { output: string | undefined } | undefined
  /** Undefined: all. */
  selection?: Selection | undefined
  /** Undefined: the table. */
  form?: 'json' | 'yaml' | 'wide' | 'name' | undefined
  isWatching?: boolean
}

/** Which mounts and volumes are told of: those to which all of it applies. */
export interface Selection {
  namespace: string | undefined
  /** A mount directory; a pod: NAMESPACE/NAME, a name or a UID; or the beginning of a volume's name. */
  of: { directory: string } | { pod: string } | { word: string } | undefined
}

export interface StatusDocument {
  verb: 'status'
  mounts: MountStatus[]
  volumes: VolumeStatus[]
  /** Volumes of any driver that containers see with a group, or that asked for it and do without. */
  containers: ContainerStatus[]
  /** Mount directories of running pods whose records are lost, and what that means. */
  unrecorded: { directory: string; reason: string }[]
  /** Mount directories whose records are damaged, or of another version's format: no call removes those. */
  unreadable: { directory: string; fault: string }[]
}

/** A volume that modekeep keeps records of. */
export interface VolumeStatus {
  volume: string
  /** Where it was when it was walked; '' where its record cannot be read. */
  source: string
  /** What a walk has made of it, null where that is not known. */
  group: number | null
  groupAccess: 'keep' | 'grant' | null
  /** False: a walk or a restore of it was not finished, or passed over directories, or it was put back (`left`). */
  complete: boolean
  /** So many inodes a restore left as their users had changed them; null: none has come to its end since the last walk. */
  left: number | null
  /** Its last unmount, or `restore`, is to put it back. */
  restorePending: boolean
  /** What others changed of it since, so that its group may not get in, and what to do; null where that is nothing. */
  changed: string | null
  /** To how many inodes the last walk applied the group, and why it skipped others; null: it skipped none. */
  skipped: SkippedInodes | null
  /** What it is if its records stand under a name that another kernel gives it; null where they do not. */
  name: string | null
  /** Recorded mounts of it. */
  mounts: number
  /** Why its record or its journal cannot be used, null where both can. */
  fault: string | null
  walk: WalkStatus | null
}

export interface MountStatus {
  directory: string
  /** Its volume's identity, '' where it goes with the mount. */
  volume: string
  /** Namespace and name, '' where kubelet told none. */
  pod: string
  /** With a subPath, where that lay when it was mounted; '' for a tmpfs. */
  source: string
  fsType: string
  readOnly: boolean
  /** The pod's fsGroup. */
  group: number | null
  /** How it was given, and why so. */
  ownership: 'none' | 'walk' | 'idmap' | 'option'
  why: string
  /** ISO 8601. */
  since: string | null
  /** What `heal` would find, and why. */
  state: Finding['state']
  reason: string
  /** What `heal` would do: `failed` where it cannot repair the mount; `reason` then names the remedy. */
  repair: Finding['action']
  /** A walk or a restore of its volume that is under way. */
  walk: WalkStatus | null
  /** Mount options that the pod's containers may not have: nothing gives them to the container runtime. */
  unenforced: string[]
  /** Mounts inside of its source that its pod does not see, also those that came later; null: there are none. */
  hiddenSubmounts: HiddenMounts | null
  /** The process that serves it, null where none does. Whether it answers is not asked. */
  daemon: { pid: number | null; state: 'alive' | 'stopped' | 'dead' } | null
}

/** What modekeep has mounted on this node, and which volumes it has records of. Changes nothing. */
export async function status(session: Session, { selection }: Partial<StatusCommand> = {}): Promise<StatusDocument> {
  const all = await readNodeStatus(session)
  return selection === undefined ? all : selectStatus(session, all, selection)
}

/** @throws {Refusal} where nothing is what one thing was named, or several are */
function selectStatus(session: Session, all: StatusDocument, { namespace, of }: Selection): StatusDocument {
  const isSelected = createMountFilter(session, all, of)
  const isInNamespace = ({ pod }: { pod: string }) => namespace === undefined || pod.startsWith(`${namespace}/`)
  const mounts = all.mounts.filter((mount) => isSelected(mount) && isInNamespace(mount))
  const containers = all.containers.filter(
    (one) => isSelected({ pod: one.pod, directory: one.source }) && isInNamespace(one),
  )
  const shown = new Set(mounts.map(({ volume }) => volume))
  const isNamed = ({ volume }: VolumeStatus) => of !== undefined && namespace === undefined && isSelected({ volume })
  const isSelectedDirectory = ({ directory }: { directory: string }) =>
    namespace === undefined && isSelected({ directory })
  const found = {
    verb: all.verb,
    mounts,
    volumes: all.volumes.filter((about) => shown.has(about.volume) || isNamed(about)),
    containers,
    unrecorded: all.unrecorded.filter(isSelectedDirectory),
    unreadable: all.unreadable.filter(isSelectedDirectory),
  }
  const isNothing = [mounts, containers, found.volumes, found.unrecorded, found.unreadable].every(
    ({ length }) => length === 0,
  )
  if (of === undefined || !isNothing) return found
  const [name] = Object.values(of)
  throw new Refusal(`nothing of ${quoted(name)} is mounted or recorded on this node: "modekeep status" lists what is`)
}

type StatusSubject = Partial<Pick<MountStatus, 'directory' | 'volume' | 'pod'>>

function createMountFilter(
  session: Session,
  { mounts, volumes, containers }: StatusDocument,
  of: Selection['of'],
): (one: StatusSubject) => boolean {
  if (of === undefined) return () => true
  if ('directory' in of) return ({ directory }) => directory === of.directory
  if ('pod' in of) return ({ pod }) => pod === of.pod
  const { word } = of
  const isOfPod = ({ pod = '', directory = '' }: StatusSubject) =>
    pod.endsWith(`/${word}`) || directory.includes(`/pods/${word}/`)
  const told = containers.map(({ pod, source }) => ({ pod, directory: source }))
  if ([...mounts, ...told].some(isOfPod)) return isOfPod
  const names = [...new Set([...mounts, ...volumes].map(({ volume }) => volume))].filter(Boolean)
  const named = isVolumePrefix(word) ? resolveVolumeName(session, word, names) : undefined
  return (one) => (named === undefined ? isOfPod(one) : one.volume === named)
}

async function readNodeStatus(session: Session): Promise<StatusDocument> {
  const findings = new Map((await healMounts(session, true)).map((finding) => [finding.directory, finding]))
  const recorded = listMounts(session)
  const lookups = pathLookups(session)
  const records = recorded.flatMap(({ record }) => record ?? [])
  const hidden = findHiddenMounts(session, records)
  const hasPlugin = runningPlugin(session)?.isRegistered === true
  const mounts = records.flatMap((record) => {
    const found = findings.get(record.directory)
    if (found === undefined || isOver(record, found)) return []
    const hiddenSubmounts = hidden.get(record.directory) ?? null
    const { state, reason, action: repair } = found
    return [{ ...createMountStatus(session, record, hasPlugin), hiddenSubmounts, state, reason, repair }]
  })
  const unrecorded = [...findings.values()].filter(({ reason }) => reason === LOST.reason)
  return {
    verb: 'status',
    unrecorded: unrecorded.map(({ directory, reason }) => ({ directory, reason })),
    mounts: mounts.sort((one, other) => (one.directory < other.directory ? -1 : 1)),
    volumes: await Promise.all(
      listVolumes(session).map((volume) => readVolumeStatus(session, volume, records, lookups)),
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
    changed: (record && changeOf(record)) ?? null,
    skipped: record?.skipped ?? null,
    name: (record && (await nameNotice(session, record, lookups)))?.text ?? null,
    mounts: (await findVolumeMounts(session, volume, records, lookups)).length,
    // Whoever is at work on it finds out himself.
    fault: problem?.message ?? (walk === null ? findJournalFault(session, volume) : undefined) ?? null,
    walk,
  }
}

function createMountStatus(
  session: Session,
  record: MountRecord,
  hasPlugin: boolean,
): Omit<MountStatus, 'hiddenSubmounts' | 'state' | 'reason' | 'repair'> {
  const { directory, volume = '', pod = '', source = '', given, mounted, request } = record
  const walk = record.volume === undefined ? null : readRunningWalk(session, record.volume)
  // What is recorded of the group is recorded when it has been given.
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
    unenforced: findUnenforcedOptions(session, record, hasPlugin),
    daemon: readDaemonStatus(session, record),
  }
}

/** Asks the process table, never the daemon: it may hang. */
function readDaemonStatus(session: Session, record: MountRecord): MountStatus['daemon'] {
  if (record.staging === undefined) return null
  const daemon = findDaemon(session, record, record.staging)
  if (daemon === undefined) return { pid: null, state: 'dead' }
  return { pid: daemon.pid, state: isStopped(daemon) ? 'stopped' : 'alive' }
}
