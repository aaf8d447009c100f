import { removeInterruptedImports } from './import-stage.ts'
import {
  removeLeftoverRecordDirectories,
  removeLeftoverRecordDirectory,
  tryAcquireNodeLock,
  tryAcquireRecordLock,
} from './locks.ts'
import { listReadableMountRecords, type MountRecord, mountRecords } from './mount-record.ts'
import { JOURNAL_FILES, locateMountRecords, locateVolumeRecords } from './record-directories.ts'
import type { Session } from './session.ts'
import { isVolumeAwaitingRestore, volumeRecords } from './volume-record.ts'

/**
 * Removes the record of a mount. Before that, removes the record directory of its volume if the volume is not recorded.
 * Call it under the mount's lock.
 * @throws {FileError} and keeps the record, so that the next call finds the files that could not be removed
 */
export function forgetMountRecord(session: Session, directory: string, volume: string | undefined): void {
  if (volume !== undefined) removeLeftoverRecordDirectory(session, locateVolumeRecords(session, volume))
  mountRecords.remove(session, directory)
}

/**
 * Removes the record and the journal of a volume, so that it cannot be restored any more. Call it under the volume's
 * lock. The record is removed first, because a journal without a record still shows that the volume was walked.
 */
export function forgetVolumeRecords(session: Session, volume: string): void {
  volumeRecords.remove(session, volume)
  const { path } = locateVolumeRecords(session, volume)
  for (const name of JOURNAL_FILES) session.host.files.remove(`${path}/${name}`)
}

/**
 * Removes the records of mounts that a reboot ended. The first call after a boot does it. Records of volumes with a
 * pending restore stay: unmount or heal finds the restore by them if the pod was deleted meanwhile.
 */
export function forgetMountsAfterReboot(session: Session): void {
  const { host, config } = session
  const boot = host.bootId()
  const sweptFile = `${config.stateDir}/boot`
  const isSwept = () => host.files.read(sweptFile)?.trim() === boot
  if (isSwept()) return
  using lock = tryAcquireNodeLock(session, 'sweep')
  // Another call removes the records now, or has removed them.
  if (lock === undefined || isSwept()) return
  let sweptRecords = 0
  for (const record of listReadableMountRecords(session)) {
    if (record.boot === boot || isVolumeAwaitingRestore(session, record.volume)) continue
    if (forgetMountUnlessBusy(session, record)) sweptRecords++
  }
  removeLeftoverRecordDirectories(session)
  removeInterruptedImports(session)
  host.files.replace(sweptFile, `${boot}\n`)
  if (sweptRecords > 0) session.note({ sweptRecords })
}

/** Removes a record, unless another call works on the mount: that call updates the record itself. */
function forgetMountUnlessBusy(session: Session, { directory, boot }: MountRecord): boolean {
  using place = tryAcquireRecordLock(session, locateMountRecords(session, directory))
  // Another call may have worked on the mount and ended since the record was listed.
  if (place === undefined || mountRecords.find(session, directory).record?.boot !== boot) return false
  mountRecords.remove(session, directory)
  return true
}
