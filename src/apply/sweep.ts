import { listMountRecords, removeMountRecord } from '../state/mount-record.ts'
import { BOOT_FILE } from '../state/paths.ts'
import { releaseForGood, tryLockMount } from './locks.ts'
import type { Session } from './session.ts'

/**
 * Removes the records of mounts that a reboot has ended, once per boot. One that owes a restore stays: its pod may come
 * back, and its unmount pays.
 */
export function sweepAfterBoot({ host, config, note }: Session): void {
  const marker = `${config.stateDir}/${BOOT_FILE}`
  const boot = host.bootId()
  if (host.files.read(marker)?.trim() === boot) return
  const stale = listMountRecords(host, config.stateDir).filter((r) => r.boot !== boot && !r.restoreOnUnmount)
  for (const record of stale) {
    // Locked: a call is at work there, which looks after its record itself.
    const lock = tryLockMount(host, config.stateDir, record.directory)
    if (!lock) continue
    removeMountRecord(host, config.stateDir, record.directory)
    releaseForGood(host, config.stateDir, record.directory, lock)
  }
  host.files.replace(marker, `${boot}\n`)
  if (stale.length > 0) note({ sweptRecords: stale.length })
}
