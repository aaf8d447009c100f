import { clearPlace } from './clear-place.ts'
import { tryLockMount } from './locks.ts'
import { listMountPlaces } from './mount-places.ts'
import { listMountRecords, readMountRecord, removeMountRecord } from './mount-record.ts'
import { BOOT_FILE, SWEEP_LOCK_FILE } from './paths.ts'
import { releaseMount } from './release-mount.ts'
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
    tidy(session)
    host.files.replace(`${config.stateDir}/${BOOT_FILE}`, `${boot}\n`)
    if (swept > 0) session.note({ sweptRecords: swept })
  } finally {
    lock.release()
  }
}

function sweptIn({ host, config }: Session): string | undefined {
  return host.files.read(`${config.stateDir}/${BOOT_FILE}`)?.trim()
}

function sweep(session: Session, boot: string): number {
  const { host, config } = session
  let swept = 0
  for (const record of listMountRecords(host, config.stateDir)) {
    if (record.boot === boot) continue
    // Locked: a call is at work there, which looks after its record itself.
    const lock = tryLockMount(host, config.stateDir, record.directory)
    if (!lock) continue
    try {
      // It may have been at work, and done, since the record was listed.
      if (readMountRecord(host, config.stateDir, record.directory)?.boot === boot) continue
      removeMountRecord(host, config.stateDir, record.directory)
      swept++
    } finally {
      releaseMount(session, record.directory, lock)
    }
  }
  return swept
}

/** Removes what calls that died, or whose disk failed, have left of mounts and volumes that no record names. Never throws. */
export function tidy(session: Session): void {
  try {
    const places = listMountPlaces(session.host, session.config.stateDir)
    for (const place of places) if (place.isLeft) clearPlace(session, place)
    tidyVolumes(session)
  } catch (error) {
    session.warn(`could not remove all that earlier calls have left: ${(error as Error).message}`)
  }
}
