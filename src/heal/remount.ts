import { mountLocked } from '../mount/mount.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import { kindFaults } from '../request/request.ts'
import { requestOf } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { kinds } from '../volume/index.ts'
import type { Judged } from './judge.ts'
import type { Finding } from './state.ts'

/** What became of a mount. */
export type Outcome = Pick<Finding, 'state' | 'action' | 'reason'> & {
  /** It is healthy, but an interrupted call has left something to do. */
  isUnfinished?: boolean
}

const NO_SECRETS =
  'its secrets came with the call that mounted it and are kept nowhere: delete the pod to mount it anew'

const ACTIONS = { fresh: 'mounted', replace: 'replaced', refuse: 'failed', ready: 'none' } as const

/**
 * Does what kubelet's next call for the mount would do. Call it under the mount's lock, unless it is dry.
 * @throws {Refusal} where the mount cannot be made
 */
export async function remount(
  session: Session,
  { record, point, plan: { state, reason } }: Judged,
  isDry: boolean,
): Promise<Outcome> {
  if (point === undefined) return { state: 'orphaned', action: 'none', reason: 'its directory is gone' }
  const request = { ...requestOf(record), directory: point.path }
  // The configuration may have changed since.
  const faults = kindFaults(request, session.config, kinds)
  if (faults.length > 0) throw new Refusal(faults)
  const warn = (message: string) => session.warn(`${point.path}: ${message}`)
  // What is told of one mount is its finding.
  const quiet = { ...session, note: () => {}, warn }
  const isSecretive = record.hadSecrets
  const { plan, doubt } = await mountLocked(quiet, request, point, { isDry: isDry || isSecretive, isKept: true })
  if (plan.decision === 'ready') {
    const isUnfinished = plan.steps.length > 0
    return doubt === undefined
      ? { state: 'healthy', action: 'none', reason: '', isUnfinished }
      : { state: 'unknown', action: 'none', reason: doubt, isUnfinished }
  }
  const found = { state: state === 'healthy' ? 'stale' : state, reason: reason || plan.reason } as const
  if (isSecretive) return { ...found, action: 'failed', reason: `${found.reason}, and ${NO_SECRETS}` }
  return { ...found, action: ACTIONS[plan.decision] }
}

/** @param state what the mount is as far as the mount table tells */
export function failed(state: Outcome['state'], error: unknown): Outcome {
  // What it shows is there, and can be had no more; any other error leaves open what it should show.
  const seen = state === 'healthy' ? (error instanceof Refusal ? 'stale' : 'unknown') : state
  return { state: seen, action: 'failed', reason: messageOf(error) }
}
