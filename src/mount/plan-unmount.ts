import type { MountRecord } from '../store/mount-record.ts'
import type { Step } from './step.ts'

/**
 * Decides what an `unmount` call does: always the same, whatever is there, as every step may find its work done. Pure.
 * @param restoreOwed a pod has asked for its volume to be put back once its last mount goes
 */
export function planUnmount(record: MountRecord | undefined, restoreOwed: boolean): Step[] {
  // Kubelet made a directory; a volume that was none lay on a file.
  const steps: Step[] = [{ do: 'detach-all' }, { do: 'set-target', type: 'directory' }]
  if (record && record.volume !== '' && restoreOwed) {
    steps.push({ do: 'restore-volume', volume: record.volume, source: record.source })
  }
  return steps.concat({ do: 'forget', volume: record?.volume ?? '' })
}
