import type { MountedView, Target } from '../mount-table/mount-point.ts'
import type { MountRecord } from '../store/mount-record.ts'
import { isOurs } from '../store/mount-record.ts'

/** What is there of a mount that a record speaks of. */
export interface HealView {
  record: MountRecord
  boot: string
  mounted: MountedView | 'broken' | undefined
  target: Target
  /** The topmost mount shows the same directory or file as the record's source. */
  showsSource: boolean
}

export interface HealPlan {
  /**
   * `mount`: as kubelet's call would, which finds it ready or makes it so. `forget`: what is recorded is over. `leave`:
   * not for modekeep to decide.
   */
  action: 'mount' | 'forget' | 'leave'
  /** With `forget`: the pod is gone, so that its volume is put back if that is owed; after a reboot it comes again. */
  pays?: boolean
  reason: string
}

/** Decides what becomes of a recorded mount that no call is at work on. Pure. */
export function planHeal(view: HealView): HealPlan {
  const { record, boot, mounted, target } = view
  const { replaces } = record
  if (mounted === undefined && target === 'missing') return forget('its directory is gone', true)
  if (record.boot !== boot) return mounted === undefined ? forget('a reboot has ended it', false) : leave()
  if (record.mounted === undefined) {
    return mounted === undefined ? { action: 'mount', reason: 'the call that made it was interrupted' } : leave()
  }
  if (mounted === undefined) return { action: 'mount', reason: 'it is not mounted' }
  if (mounted === 'broken') return { action: 'mount', reason: 'it does not answer' }
  if (isOurs(record, view)) return { action: 'mount', reason: '' }
  if (replaces?.mountId === String(mounted.mountId)) {
    return { action: 'mount', reason: 'its replacement was interrupted' }
  }
  return view.showsSource ? { action: 'mount', reason: 'its source is mounted over it once more' } : leave()
}

function forget(reason: string, pays: boolean): HealPlan {
  return { action: 'forget', reason, pays }
}

/** Whoever mounted that may need it. */
function leave(): HealPlan {
  return {
    action: 'leave',
    reason: 'something that modekeep does not know is mounted there: unmount it, or delete the pod',
  }
}
