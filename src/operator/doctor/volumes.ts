import { collectGarbage } from '../../heal/garbage.ts'
import { isVolumeBusy } from '../../store/locks.ts'
import { listMountRecords } from '../../store/mount-record.ts'
import type { Session } from '../../store/session.ts'
import { isVolumeRecordDamaged, listVolumes, readVolumeRecord } from '../../store/volume-record.ts'
import type { CheckFinding } from '../actions/document.ts'
import { journalFault } from '../actions/journal.ts'
import { findingsOf } from './findings.ts'

const { ok, warning, fault } = findingsOf('volumes')

/** What is remembered of volumes, and what nobody needs any more. */
export async function volumeFindings(session: Session): Promise<CheckFinding[]> {
  const { host, config } = session
  const volumes = listVolumes(host, config.stateDir)
  const garbage = (await collectGarbage(session, { isDry: true, forget: undefined })).filter(
    ({ action }) => action === 'removed',
  )
  const found = volumes.flatMap((volume) => aboutVolume(session, volume))
  return [
    ok(`volumes that are remembered: ${volumes.length}`),
    ...found,
    ...(garbage.length === 0
      ? []
      : [
          warning(
            `${garbage.length} things in ${config.stateDir} are not needed any more`,
            'modekeep gc (--dry-run names them)',
          ),
        ]),
  ]
}

function aboutVolume(session: Session, volume: string): CheckFinding[] {
  const { host, config } = session
  if (isVolumeBusy(host, config.stateDir, volume)) return []
  const damage = journalFault(session, volume)
  if (damage !== null)
    return [fault(damage, `what it says; "modekeep gc --forget ${volume}" gives up a volume that is gone`)]
  const record = readVolumeRecord(host, config.stateDir, volume)
  if (isVolumeRecordDamaged(host, config.stateDir, volume)) {
    const way = 'modekeep restore DIR, with its directory, puts it back; then walk it again'
    return [fault(`the record of volume ${volume} cannot be read`, way)]
  }
  if (record === undefined) return []
  const isUsed = listMountRecords(host, config.stateDir).some((mount) => mount.volume === volume)
  if (record.restorePending && !isUsed) {
    return [warning(`a restore is owed to ${record.source}`, `modekeep restore ${volume}, or mount it in a pod again`)]
  }
  if (record.complete || isUsed) return []
  return [
    warning(
      `a walk or restore of ${record.source} was not finished`,
      `modekeep apply ${record.source} --fsgroup ${record.group}, or modekeep restore ${volume}`,
    ),
  ]
}
