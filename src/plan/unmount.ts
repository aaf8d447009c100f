import type { MountRecord } from '../state/mount-record.ts'
import type { Step } from './step.ts'

/**
 * Decides what an `unmount` call does: always the same, whatever is there, as every step may find its work done. Pure.
 * @param lastOfVolume no other mount of the record's volume is left
 */
export function planUnmount(record: MountRecord | undefined, lastOfVolume: boolean): Step[] {
  const steps: Step[] = [{ do: 'detach-all' }]
  if (record?.restoreOnUnmount && record.volume !== '' && lastOfVolume) {
    steps.push({ do: 'restore-volume', volume: record.volume, source: record.source })
  }
  return steps.concat({ do: 'forget' })
}
