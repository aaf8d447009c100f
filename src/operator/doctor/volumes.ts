import { collectGarbage } from '../../heal/garbage.ts'
import { unlessUnreadable } from '../../store/json-record.ts'
import { isVolumeBusy } from '../../store/locks.ts'
import { listMountRecords } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { hasVolumeRecord, listVolumes, readVolumeRecord } from '../../store/volume-record.ts'
import { journalFault } from '../actions/journal.ts'
import { type CheckFinding, findingsOf } from './findings.ts'

const { ok, warning, fault } = findingsOf('volumes')

/** Records of volumes, and what nothing needs any more. */
export async function volumeFindings(session: Session): Promise<CheckFinding[]> {
  const { host, config } = session
  const volumes = listVolumes(host, config.stateDir)
  const found = await collectGarbage(session, { isDry: true, forget: undefined })
  const leftovers = found.filter(({ action }) => action === 'removed').length
  return [
    ok(`volumes on record: ${volumes.length}`),
    ...volumes.flatMap((volume) => aboutVolume(session, volume)),
    ...(leftovers > 0
      ? [warning(`leftovers in ${config.stateDir}: ${leftovers}`, 'modekeep gc (--dry-run lists them)')]
      : []),
  ]
}

function aboutVolume(session: Session, volume: string): CheckFinding[] {
  const { host, config } = session
  if (isVolumeBusy(host, config.stateDir, volume)) return []
  const damage = journalFault(session, volume)
  if (damage !== undefined)
    return [fault(damage, `what it says; "modekeep gc --forget ${volume}" removes the record of a volume that is gone`)]
  const record = unlessUnreadable(() => readVolumeRecord(host, config.stateDir, volume))
  if (record === undefined && hasVolumeRecord(host, config.stateDir, volume)) {
    const way = 'modekeep restore DIR, with its directory, puts it back; then walk it again'
    return [fault(`the record of volume ${volume} cannot be read`, way)]
  }
  if (record === undefined) return []
  const isUsed = listMountRecords(host, config.stateDir).some((mount) => mount.volume === volume)
  if (record.restorePending && !isUsed) {
    return [
      warning(`the restore of ${record.source} is pending`, `modekeep restore ${volume}, or mount it in a pod again`),
    ]
  }
  if (record.complete || isUsed) return []
  return [
    warning(
      `a walk or restore of ${record.source} was not finished`,
      `modekeep apply ${record.source} --fsgroup ${record.group}, or modekeep restore ${volume}`,
    ),
  ]
}
