import type { MountedView, Target } from '../mount-table/mount-point.ts'
import type { MountRecord } from '../store/mount-record.ts'
import { isOurs } from '../store/mount-record.ts'
import type { MountState } from './state.ts'

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
  /** As far as the mount table tells: whether the source is still the one that is mounted takes a look at that. */
  state: MountState
  /**
   * `mount`: as kubelet's call would, which finds it ready or makes it so. `forget`: what is recorded is over. `leave`:
   * not for modekeep to decide.
   */
  action: 'mount' | 'forget' | 'leave'
  reason: string
}

/** Decides what becomes of a recorded mount that no call is at work on. Pure. */
export function planHeal(view: HealView): HealPlan {
  const { record, boot, mounted, target } = view
  const { replaces } = record
  const isMissing = mounted === undefined
  if (isMissing && target === 'missing') return { state: 'orphaned', action: 'forget', reason: 'its directory is gone' }
  if (record.boot !== boot) {
    return isMissing ? { state: 'missing', action: 'forget', reason: 'a reboot has ended it' } : FOREIGN
  }
  if (record.mounted === undefined) {
    return isMissing ? mount('interrupted', 'the call that mounted it was interrupted') : FOREIGN
  }
  if (isMissing) return mount('missing', 'it is not mounted')
  if (mounted === 'broken') return mount('stale', 'it does not respond')
  if (isOurs(record, view)) return mount('healthy', '')
  if (replaces?.mountId === String(mounted.mountId)) return mount('interrupted', 'its replacement was interrupted')
  return view.showsSource ? mount('stale', 'its source is mounted over it once more') : FOREIGN
}

function mount(state: MountState, reason: string): HealPlan {
  return { state, action: 'mount', reason }
}

/** Whoever mounted that may need it. */
const FOREIGN: HealPlan = {
  state: 'unknown',
  action: 'leave',
  reason: 'something that modekeep does not know is mounted there: unmount it, or delete the pod',
}
