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
import { type Session, warnOnFailure } from './session.ts'
import { hasVolumeJournal, isJournalEmpty, readFirstVolumeRecord } from './volume-journal.ts'
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
  let isSkipped = false
  for (const volume of listVolumesWithRecords(session)) if (!recoverVolumeRecord(session, volume)) isSkipped = true
  for (const { directory, hasRecord } of listMountRecordDirectories(session)) {
    if (!hasRecord || directory === '') continue
    const { record, problem } = mountRecords.find(session, directory)
    const isKept = problem ?? (record?.boot === boot || isVolumeAwaitingRestore(session, record?.volume))
    if (isKept) continue
    if (forgetMountUnlessBusy(session, directory, record?.boot)) sweptRecords++
    // A call that works on a record updates it, unless the record was never written.
    else if (record === undefined) isSkipped = true
  }
  removeLeftoverRecordDirectories(session)
  removeInterruptedImports(session)
  if (!isSkipped) host.files.replaceUntilBoot(locateSweptBootFile(session), `${boot}\n`)
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

/**
 * Recovers the record of a volume whose first walk a power cut interrupted, from its journal.
 * @returns false if a call works on the volume
 */
function recoverVolumeRecord(session: Session, volume: string): boolean {
  const { record, problem } = volumeRecords.find(session, volume)
  const hasJournal = hasVolumeJournal(session, volume)
  if (record !== undefined || problem !== undefined || !(hasJournal || volumeRecords.has(session, volume))) return true
  using place = tryAcquireRecordLock(session, locateVolumeRecords(session, volume))
  if (place === undefined) return false
  warnOnFailure(session, `could not recover the record of volume ${volume}`, () => {
    const text = hasJournal && !isJournalEmpty(session, volume) && readFirstVolumeRecord(session, volume)
    if (text) volumeRecords.recover(session, volume, text)
    else volumeRecords.remove(session, volume)
  })
  return true
}
