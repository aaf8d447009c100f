import { sweepStaging } from '../filesystem/staged.ts'
import { listMountRecords, readMountRecord, removeMountRecord } from '../state/mount-record.ts'
import { BOOT_FILE, SWEEP_LOCK_FILE } from '../state/paths.ts'
import { releaseForGood, tryLockMount } from './locks.ts'
import type { Session } from './session.ts'
import { tidyVolumes } from './tidy-volume.ts'

/**
 * Removes the records of mounts that a reboot has ended, once per boot, by the first call that comes. A restore
 * that is owed is the volume's, not the mount's, and stays owed.
 */
export function sweepAfterBoot(session: Session): void {
  const { host, config } = session
  const boot = host.bootId()
  if (sweptIn(session) === boot) return
  host.files.makeDirectory(config.stateDir)
  const lock = host.tryLock(`${config.stateDir}/${SWEEP_LOCK_FILE}`)
  // Another call is at it.
  if (!lock) return
  try {
    if (sweptIn(session) === boot) return
    const swept = sweep(session, boot)
    tidyVolumes(session)
    host.files.replace(`${config.stateDir}/${BOOT_FILE}`, `${boot}\n`)
    if (swept > 0) session.note({ sweptRecords: swept })
  } finally {
    lock.release()
  }
}

function sweptIn({ host, config }: Session): string | undefined {
  return host.files.read(`${config.stateDir}/${BOOT_FILE}`)?.trim()
}

function sweep({ host, config }: Session, boot: string): number {
  let swept = 0
  for (const record of listMountRecords(host, config.stateDir)) {
    if (record.boot === boot) continue
    // Locked: a call is at work there, which looks after its record itself.
    const lock = tryLockMount(host, config.stateDir, record.directory)
    if (!lock) continue
    // It may have been at work, and done, since the record was listed.
    if (readMountRecord(host, config.stateDir, record.directory)?.boot === boot) {
      lock.release()
      continue
    }
    removeMountRecord(host, config.stateDir, record.directory)
    releaseForGood(host, config.stateDir, record.directory, lock)
    swept++
  }
  return swept
}

/** Removes what killed calls were just having mounted; a call that is not about them goes on whatever happens. */
export function sweepStages({ host, config, warn }: Session): void {
  try {
    sweepStaging(host, config.stateDir)
  } catch (error) {
    warn(`could not remove what a killed call has left: ${(error as Error).message}`)
  }
}
