import { releaseMount, removeLeftovers, removeVolumeLeftover } from './leftovers.ts'
import { tryLockMount } from './locks.ts'
import { listMountRecords, readMountRecord, removeMountRecord } from './mount-record.ts'
import { BOOT_FILE, JOURNAL_FILES, SWEEP_LOCK_FILE, volumeStateDirectory } from './paths.ts'
import type { Session } from './session.ts'
import { removeVolumeRecord } from './volume-record.ts'

/**
 * Removes the record of a mount, after the place of its volume where nothing is remembered of that. Call it under the
 * mount's lock.
 * @throws {FileError} and the record stays, by which the next call finds what could not be removed
 */
export function forgetMount(session: Session, directory: string, volume: string | undefined): void {
  if (volume !== undefined) removeVolumeLeftover(session, volume)
  removeMountRecord(session.host, session.config.stateDir, directory)
}

/**
 * Removes what is recorded of a volume: nothing of it can be put back then. Call it under the volume's lock. The record
 * goes first: a journal without a record is still known to hold something.
 */
export function forgetVolume({ host, config }: Session, volume: string): void {
  removeVolumeRecord(host, config.stateDir, volume)
  const place = volumeStateDirectory(config.stateDir, volume)
  for (const name of JOURNAL_FILES) host.files.remove(`${place}/${name}`)
}

/**
 * Removes the records of mounts that a reboot has ended, once per boot, by the first call that comes. A pending restore
 * is the volume's, not the mount's, and stays pending.
 */
export function forgetAfterBoot(session: Session): void {
  const { host, config } = session
  const boot = host.bootId()
  if (sweptIn(session) === boot) return
  host.files.makeDirectory(config.stateDir)
  const lock = host.tryLock(`${config.stateDir}/${SWEEP_LOCK_FILE}`)
  // Another call is at it.
  if (!lock) return
  try {
    if (sweptIn(session) === boot) return
    const swept = forgetMountsBefore(session, boot)
    removeLeftovers(session)
    host.files.replace(`${config.stateDir}/${BOOT_FILE}`, `${boot}\n`)
    if (swept > 0) session.note({ sweptRecords: swept })
  } finally {
    lock.release()
  }
}

function sweptIn({ host, config }: Session): string | undefined {
  return host.files.read(`${config.stateDir}/${BOOT_FILE}`)?.trim()
}

/** @returns how many */
function forgetMountsBefore(session: Session, boot: string): number {
  const { host, config } = session
  let forgotten = 0
  for (const record of listMountRecords(host, config.stateDir)) {
    if (record.boot === boot) continue
    // Locked: a call is at work there, which looks after its record itself.
    const lock = tryLockMount(host, config.stateDir, record.directory)
    if (!lock) continue
    try {
      // It may have been at work, and done, since the record was listed.
      if (readMountRecord(host, config.stateDir, record.directory)?.boot === boot) continue
      removeMountRecord(host, config.stateDir, record.directory)
      forgotten++
    } finally {
      releaseMount(session, record.directory, lock)
    }
  }
  return forgotten
}
