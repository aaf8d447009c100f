import type { FaultCode } from '../errors/entries/index.ts'
import { findFaultCode, formatError, Refusal } from '../errors/refusal.ts'
import { listReadableMountRecords } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'

/** The states of a recorded mount, for status, heal, doctor, metrics and documents. */
export const MOUNT_STATES = [
  'healthy',
  /** Nothing is mounted there. */
  'missing',
  /** Its source changed, its daemon crashed, or a mount of the same source covers it. */
  'stale',
  /** The mount is healthy, but other processes changed its volume after the group was applied. */
  'changed',
  /** The pod's group is not applied to its root, or the kernel rejected it for other inodes. */
  'partial',
  /** Its pod was deleted without an unmount, or seems to have been. */
  'orphaned',
  /** The call that mounted or replaced it crashed. */
  'interrupted',
  /** Its server does not respond, or something that modekeep does not know is mounted there. */
  'unknown',
  /** The volume is unmounted, but its file system is still in use. */
  'busy',
  /** A call uses the mount. */
  'in progress',
] as const

export type MountState = (typeof MOUNT_STATES)[number]

/** Whether every surface reports a mount in this state as a fault: heal, doctor, metrics, CSI's condition, `kubectl modekeep`. */
export function isFaultyState(state: MountState): boolean {
  return state !== 'healthy' && state !== 'in progress'
}

/** The actions of heal for a mount. */
export const HEAL_ACTIONS = ['none', 'mounted', 'replaced', 'unmounted', 'forgotten', 'failed'] as const

export type HealAction = (typeof HEAL_ACTIONS)[number]

/** The state of a recorded mount, and heal's action. */
export interface MountFinding {
  directory: string
  pod: string
  state: MountState
  /** A dry run reports the action that would be done. */
  action: HealAction
  /** A clause for messages; '' if no fault is found. */
  reason: string
  /** The code of the reason, if an entry describes it. */
  code?: FaultCode
}

/** The result of a heal for one mount. */
export type HealOutcome = Pick<MountFinding, 'state' | 'action' | 'reason' | 'code'> & {
  /** The mount is healthy, but an interrupted call did not complete its last steps. */
  isUnfinished?: boolean
  /** The server or daemon of the mount does not respond: the mount is skipped, and not checked again under the lock. */
  isUnresponsive?: boolean
}

export const IN_PROGRESS_OUTCOME: HealOutcome = {
  state: 'in progress',
  action: 'none',
  reason: 'a call is at work on it',
}

export const UNRESPONSIVE_OUTCOME = { state: 'unknown', action: 'none', isUnresponsive: true } as const

export const HEALTHY_OUTCOME: HealOutcome = { state: 'healthy', action: 'none', reason: '' }

/** @param state the state of the mount as far as the mount table shows it */
export function toFailedHealOutcome(state: HealOutcome['state'], error: unknown): HealOutcome {
  const code = findFaultCode(error)
  // A refusal means that the mounted source can no longer be mounted; after another error its state is unknown.
  const isRefused = error instanceof Refusal && code !== 'volume-failed'
  const seen = state === 'healthy' ? (isRefused ? 'stale' : 'unknown') : state
  return { state: seen, action: 'failed', reason: formatError(error), ...(code && { code }) }
}

/**
 * Refuses to run outside kubelet's mount namespace: its mounts are invisible there, or are copies with other ids, so a mount
 * in use looks unmounted.
 * @throws {Refusal} if the recorded mounts were made in another mount namespace than this process's
 */
export function refuseOtherMountNamespace(session: Session): void {
  const boot = session.host.bootId()
  const here = session.host.mountNamespace()
  const other = listReadableMountRecords(session).find(
    ({ mounted, boot: of }) => of === boot && mounted !== undefined && mounted.namespace !== here,
  )
  if (other === undefined) return
  throw Refusal.of(
    'mount-namespace',
    `modekeep's mounts are in another mount namespace than this process (${other.directory} was made in ${other.mounted?.namespace}, this is ${here})`,
    "run it in kubelet's, on most nodes by nsenter --target 1 --mount",
  )
}
