import { healMounts } from '../../heal/heal.ts'
import { unlessUnreadable } from '../../store/json-record.ts'
import { isVolumeBusy } from '../../store/locks.ts'
import { listMountRecords, listUnreadableMounts, type MountRecord } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { listVolumes, readVolumeRecord, volumeRecordProblem } from '../../store/volume-record.ts'
import { readWalkProgress } from '../../store/walk-progress.ts'
import { daemonOf, isStopped } from '../../volume/daemon.ts'
import type { MountStatus, StatusDocument, VolumeStatus, WalkStatus } from './document.ts'
import { journalFault } from './journal.ts'

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
