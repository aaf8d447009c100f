import { healMounts } from '../../heal/heal.ts'
import type { Finding } from '../../heal/state.ts'
import { unlessUnreadable } from '../../store/json-record.ts'
import { isVolumeBusy } from '../../store/locks.ts'
import { listMountRecords, listUnreadableMounts, type MountRecord } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { listVolumes, readVolumeRecord, volumeRecordProblem } from '../../store/volume-record.ts'
import { readWalkProgress } from '../../store/walk-progress.ts'
import { daemonOf, isStopped } from '../../volume/daemon.ts'
import { journalFault } from './journal.ts'

/** @property metrics they are wanted instead: on stdout, or in this file */
export interface StatusCommand {
  verb: 'status'
  metrics: { output: string | undefined } | undefined
}

export interface StatusDocument {
  verb: 'status'
  mounts: MountStatus[]
  volumes: VolumeStatus[]
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
  /** False: a walk or a restore of it was not finished. */
  complete: boolean
  /** Its last unmount, or `restore`, is to put it back. */
  restorePending: boolean
  /** Recorded mounts of it. */
  mounts: number
  /** Why its record or its journal cannot be used, null where both can. */
  fault: string | null
  walk: WalkStatus | null
}

/** A walk or a restore that is under way. */
export interface WalkStatus {
  /** Null in its first second, when no counts are written yet. */
  pid: number | null
  visited: number
  changed: number
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
  /** A walk or a restore of its volume that is under way. */
  walk: WalkStatus | null
  /** The process that serves it, null where none does. Whether it answers is not asked. */
  daemon: { pid: number | null; state: 'alive' | 'stopped' | 'dead' } | null
}

/** What modekeep has mounted on this node, and which volumes it has records of. Changes nothing. */
export async function status(session: Session): Promise<StatusDocument> {
  const { host, config } = session
  const findings = new Map((await healMounts(session, true)).map((finding) => [finding.directory, finding]))
  const records = listMountRecords(host, config.stateDir)
  const mounts = records.flatMap((record) => {
    const found = findings.get(record.directory)
    return found === undefined ? [] : [{ ...aboutMount(session, record), state: found.state, reason: found.reason }]
  })
  return {
    verb: 'status',
    mounts: mounts.sort((one, other) => (one.directory < other.directory ? -1 : 1)),
    volumes: listVolumes(host, config.stateDir).map((volume) => aboutVolume(session, volume, records)),
    unreadable: listUnreadableMounts(host, config.stateDir).map(({ directory, problem }) => ({
      directory,
      fault: problem.message,
    })),
  }
}

function aboutVolume(session: Session, volume: string, records: readonly MountRecord[]): VolumeStatus {
  const { host, config } = session
  const record = unlessUnreadable(() => readVolumeRecord(host, config.stateDir, volume))
  const walk = walkUnderWay(session, volume)
  return {
    volume,
    source: record?.source ?? '',
    group: record?.group ?? null,
    groupAccess: record?.groupAccess ?? null,
    complete: record?.complete ?? false,
    restorePending: record?.restorePending ?? false,
    mounts: records.filter((mount) => mount.volume === volume).length,
    // Whoever is at work on it finds out himself.
    fault:
      volumeRecordProblem(host, config.stateDir, volume)?.message ??
      (walk === null ? journalFault(session, volume) : undefined) ??
      null,
    walk,
  }
}

function aboutMount(session: Session, record: MountRecord): Omit<MountStatus, 'state' | 'reason'> {
  const { directory, volume = '', pod = '', source = '', given, mounted, request } = record
  return {
    directory,
    volume,
    pod,
    source,
    fsType: request.fsType,
    readOnly: request.readOnly,
    group: request.fsGroup ?? null,
    ownership: given.by,
    why: given.why ?? '',
    since: mounted === undefined ? null : new Date(mounted.since).toISOString(),
    walk: walkUnderWay(session, record.volume),
    daemon: daemonStatus(session, record),
  }
}

/** Asks the process table, never the daemon: it may hang. */
function daemonStatus(session: Session, record: MountRecord): MountStatus['daemon'] {
  const daemon = daemonOf(session, record)
  if (daemon === null) return null
  if (daemon === undefined) return { pid: null, state: 'dead' }
  return { pid: daemon.pid, state: isStopped(daemon) ? 'stopped' : 'alive' }
}

function walkUnderWay({ host, config }: Session, volume: string | undefined): WalkStatus | null {
  if (volume === undefined || !isVolumeBusy(host, config.stateDir, volume)) return null
  const { pid, visited, changed } = readWalkProgress(host, config.stateDir, volume) ?? NOT_TOLD_YET
  return { pid, visited, changed }
}

const NOT_TOLD_YET: WalkStatus = { pid: null, visited: 0, changed: 0 }
