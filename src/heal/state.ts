/** What can be said of a recorded mount: one vocabulary for status, heal, doctor, metrics and documents. */
export const MOUNT_STATES = [
  'healthy',
  /** Nothing is mounted there. */
  'missing',
  /** Its source changed, its daemon is dead, or something of the same source is mounted over it. */
  'stale',
  /** It is well, but others changed its volume since that was given to its group. */
  'changed',
  /** The pod's group is not applied to its root, or the kernel rejected it for other inodes. */
  'partial',
  /** Its pod is gone without an unmount, or seems to be. */
  'orphaned',
  /** The call that mounted or replaced it crashed. */
  'interrupted',
  /** Its server does not respond, or something that modekeep does not know is mounted there. */
  'unknown',
  /** It is unmounted, but its file system is still in use. */
  'busy',
  /** A call is at work on it. */
  'in progress',
] as const

export type MountState = (typeof MOUNT_STATES)[number]

/** Whether every surface reports a mount in this state as a fault: heal, doctor, metrics, CSI's condition, `kubectl modekeep`. */
export function isUnwell(state: MountState): boolean {
  return state !== 'healthy' && state !== 'in progress'
}

/** What heal does about it. */
export const HEAL_ACTIONS = ['none', 'mounted', 'replaced', 'unmounted', 'forgotten', 'failed'] as const

export type HealAction = (typeof HEAL_ACTIONS)[number]

/** What heal found of a recorded mount, and did. */
export interface Finding {
  directory: string
  pod: string
  state: MountState
  /** In a dry run: what would be done. */
  action: HealAction
  /** In words; '' where all is well, as far as can be told. */
  reason: string
}
