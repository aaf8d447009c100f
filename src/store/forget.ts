import { removeImports } from './import-stage.ts'
import { removeLeftover, removeLeftovers, tryHoldPlace } from './leftovers.ts'
import { tryLockNode } from './locks.ts'
import { listMountRecords, type MountRecord, mountRecords } from './mount-record.ts'
import { JOURNAL_FILES, mountPlace, volumePlace } from './places.ts'
import type { Session } from './session.ts'
import { awaitsRestore, volumeRecords } from './volume-record.ts'

/**
 * Removes the record of a mount, after the place of its volume where nothing is remembered of that. Call it under the
 * mount's lock.
 * @throws {FileError} and the record stays, by which the next call finds what could not be removed
 */
export function forgetMount(session: Session, directory: string, volume: string | undefined): void {
  if (volume !== undefined) removeLeftover(session, volumePlace(session, volume))
  mountRecords.remove(session, directory)
}

/**
 * Removes what is recorded of a volume: nothing of it can be put back then. Call it under the volume's lock. The record
 * goes first: a journal without a record is still known to hold something.
 */
export function forgetVolume(session: Session, volume: string): void {
  volumeRecords.remove(session, volume)
  const { path } = volumePlace(session, volume)
  for (const name of JOURNAL_FILES) session.host.files.remove(`${path}/${name}`)
}

/**
 * Removes the records of mounts that a reboot has ended, once per boot, by the first call that comes. Those of volumes
 * with a pending restore stay: a pod that was deleted meanwhile has no other, by which its unmount or heal runs that.
 */
export function forgetAfterBoot(session: Session): void {
  const { host, config } = session
  const boot = host.bootId()
  const sweptFile = `${config.stateDir}/boot`
  const isSwept = () => host.files.read(sweptFile)?.trim() === boot
  if (isSwept()) return
  using lock = tryLockNode(session, 'sweep')
  // Another call is at it, or was.
  if (lock === undefined || isSwept()) return
  let sweptRecords = 0
  for (const record of listMountRecords(session)) {
    if (record.boot === boot || awaitsRestore(session, record.volume)) continue
    if (forgetUnlessBusy(session, record)) sweptRecords++
  }
  removeLeftovers(session)
  removeImports(session)
  host.files.replace(sweptFile, `${boot}\n`)
  if (sweptRecords > 0) session.note({ sweptRecords })
}

/** Whoever is at work there looks after the record himself. */
function forgetUnlessBusy(session: Session, { directory, boot }: MountRecord): boolean {
  using place = tryHoldPlace(session, mountPlace(session, directory))
  // A call may have been at work, and done, since the record was listed.
  if (place === undefined || mountRecords.find(session, directory).record?.boot !== boot) return false
  mountRecords.remove(session, directory)
  return true
}
