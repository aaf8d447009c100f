import { removeInterruptedImports } from './import-stage.ts'
import {
  removeLeftoverRecordDirectories,
  removeLeftoverRecordDirectory,
  tryAcquireNodeLock,
  tryAcquireRecordLock,
} from './locks.ts'
import { mountRecords } from './mount-record.ts'
import {
  isSweptSinceBoot,
  JOURNAL_FILES,
  listMountRecordDirectories,
  listVolumesWithRecords,
  locateMountRecords,
  locateSweptBootFile,
  locateVolumeRecords,
} from './record-directories.ts'
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
 * Removes the records of mounts that a reboot ended, and records that a power cut left unwritten. The first call after a
 * boot does it. Records of volumes with a pending restore stay: unmount or heal finds the restore by them if the pod was
 * deleted meanwhile.
 */
export function forgetAfterReboot(session: Session): void {
  const { host } = session
  const boot = host.bootId()
  if (isSweptSinceBoot(session)) return
  using lock = tryAcquireNodeLock(session, 'sweep')
  // Another call removes the records now, or has removed them.
  if (lock === undefined || isSweptSinceBoot(session)) return
  let sweptRecords = 0
  for (const { directory, hasRecord } of listMountRecordDirectories(session)) {
    if (!hasRecord || directory === '') continue
    const { record, problem } = mountRecords.find(session, directory)
    const isKept = problem ?? (record?.boot === boot || isVolumeAwaitingRestore(session, record?.volume))
    if (!isKept && forgetMountUnlessBusy(session, directory, record?.boot)) sweptRecords++
  }
  for (const volume of listVolumesWithRecords(session)) forgetUnwrittenVolumeRecord(session, volume)
  removeLeftoverRecordDirectories(session)
  removeInterruptedImports(session)
  // A lost file is that of another boot, and so is an empty one.
  host.files.replaceUntilBoot(locateSweptBootFile(session), `${boot}\n`)
  if (sweptRecords > 0) session.note({ sweptRecords })
}

/**
 * Removes a record, unless another call works on the mount: that call updates the record itself.
 * @param boot of the record; undefined: it was never written
 */
function forgetMountUnlessBusy(session: Session, directory: string, boot: string | undefined): boolean {
  using place = tryAcquireRecordLock(session, locateMountRecords(session, directory))
  if (place === undefined) return false
  // Another call may have worked on the mount and ended since the record was listed.
  const { record, problem } = mountRecords.find(session, directory)
  if (problem !== undefined || record?.boot !== boot) return false
  mountRecords.remove(session, directory)
  return true
}

/** A first walk was interrupted before its record reached the disk. The journal shows what it changed. */
function forgetUnwrittenVolumeRecord(session: Session, volume: string): void {
  const isUnwritten = () => {
    const { record, problem } = volumeRecords.find(session, volume)
    return (record ?? problem) === undefined && volumeRecords.has(session, volume)
  }
  if (!isUnwritten()) return
  using place = tryAcquireRecordLock(session, locateVolumeRecords(session, volume))
  if (place !== undefined && isUnwritten()) volumeRecords.remove(session, volume)
}
