import type { StatusDocument } from '../operator/actions/status.ts'
import { unlessUnreadable } from '../store/json-record.ts'
import { isVolumeBusy } from '../store/locks.ts'
import { listMountRecords } from '../store/mount-record.ts'
import { listReservations } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { listVolumes, readVolumeRecord } from '../store/volume-record.ts'
import { add, type Samples } from './samples.ts'

/** What is so at this moment. */
export function addGauges(samples: Samples, session: Session, { mounts }: StatusDocument, version: string): void {
  add(samples, 'modekeep_info', { version })
  for (const { fsType, ownership, state, daemon } of mounts) {
    add(samples, 'modekeep_mounts', { type: fsType, ownership, state })
    if (daemon) add(samples, 'modekeep_daemons', { state: daemon.state })
  }
  const { host, config } = session
  add(samples, 'modekeep_walks_running', {}, listReservations(host, config.stateDir).length)
  for (const state of pendingRestores(session)) add(samples, 'modekeep_restores_pending', { state })
  add(samples, 'modekeep_calls_logged', {}, ['info', 'debug'].includes(config.logLevel) ? 1 : 0)
}

/** One for each volume with a pending restore; a restore that is running is not overdue. */
function pendingRestores({ host, config }: Session): ('mounted' | 'overdue')[] {
  const { stateDir } = config
  const mounted = new Set(listMountRecords(host, stateDir).map(({ volume }) => volume))
  return listVolumes(host, stateDir).flatMap((volume) => {
    if (!unlessUnreadable(() => readVolumeRecord(host, stateDir, volume))?.restorePending) return []
    return mounted.has(volume) || isVolumeBusy(host, stateDir, volume) ? 'mounted' : 'overdue'
  })
}
