import { daemonOf, isStopped } from '../apply/daemon.ts'
import { healMounts } from '../apply/heal.ts'
import { isVolumeBusy } from '../apply/locks.ts'
import type { Session } from '../apply/session.ts'
import { listMountRecords, type MountRecord } from '../state/mount-record.ts'
import { requestFrom } from '../state/request-key.ts'
import { readWalkProgress } from '../state/walk-progress.ts'
import type { MountStatus, StatusDocument } from './document.ts'

/** What modekeep has mounted on this node. Changes nothing. */
export async function status(session: Session): Promise<StatusDocument> {
  const { host, config } = session
  const findings = new Map((await healMounts(session, true)).map((finding) => [finding.directory, finding]))
  const mounts = listMountRecords(host, config.stateDir).flatMap((record) => {
    const found = findings.get(record.directory)
    return found === undefined ? [] : [{ ...aboutMount(session, record), health: found.outcome, reason: found.reason }]
  })
  return { verb: 'status', mounts: mounts.sort((one, other) => (one.directory < other.directory ? -1 : 1)) }
}

function aboutMount(session: Session, record: MountRecord): Omit<MountStatus, 'health' | 'reason'> {
  const { directory, pod, source, fsType, ownership, why, since } = record
  const asked = requestFrom(record.request)
  return {
    directory,
    pod,
    source,
    fsType,
    readOnly: asked?.readOnly ?? false,
    group: asked?.fsGroup ?? null,
    ownership,
    why,
    since: since > 0 ? new Date(since).toISOString() : null,
    walk: walkUnderWay(session, record),
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

function walkUnderWay({ host, config }: Session, { volume }: MountRecord): MountStatus['walk'] {
  if (volume === '' || !isVolumeBusy(host, config.stateDir, volume)) return null
  const { visited, changed } = readWalkProgress(host, config.stateDir, volume) ?? { visited: 0, changed: 0 }
  return { visited, changed }
}
