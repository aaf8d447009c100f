import { Refusal } from '../errors/refusal.ts'
import { findWalker, hasAbandonedWalker } from '../store/lock-holders.ts'
import { listReservations } from '../store/reservation-record.ts'
import type { Session } from '../store/session.ts'
import { listRootBits, rootBits } from '../store/volume-record.ts'
import { formatTooManyLeft } from '../worker/given-up.ts'

/** Each is a process of some 90 MB that the kernel does not let end. */
const MAX_ABANDONED_WALKERS = 4

/**
 * Limits the walkers that outlive their calls, for each namespace. Call it under the node's lock for reservations.
 * @param pod as its reservation names it: the namespace, a slash and the name
 * @throws {Refusal} if the walks of the namespace's pods have left too many of them
 */
export function refuseManyAbandonedWalkers(session: Session, pod: string | undefined): void {
  const namespace = parseNamespace(pod)
  if (namespace === undefined) return
  const abandoned = listReservations(session)
    .filter(({ record }) => parseNamespace(record?.pod) === namespace)
    .filter(({ volume }) => hasAbandonedWalker(session, volume))
  if (abandoned.length < MAX_ABANDONED_WALKERS) return
  const processes = abandoned.map(({ volume }) => findWalker(session, volume) ?? '(unknown)')
  throw new Refusal(
    `the walks of ${abandoned.length} volumes of namespace ${namespace} were given up, and their processes still wait in the kernel (${processes.join(', ')}): end the processes that keep directories of these volumes locked, or repair their disks or servers`,
  )
}

/**
 * Limits the processes that outlive their calls and change the root of a volume whose set-gid bit is recorded.
 * @param pod as the record names it
 */
export function refuseManyAbandonedRoots(session: Session, pod: string | undefined): void {
  const namespace = parseNamespace(pod)
  if (namespace === undefined) return
  const abandoned = listRootBits(session)
    .filter((volume) => hasAbandonedWalker(session, volume))
    .filter((volume) => parseNamespace(rootBits.find(session, volume).record?.pod) === namespace)
  if (abandoned.length < MAX_ABANDONED_WALKERS) return
  const processes = abandoned.flatMap((volume) => findWalker(session, volume) ?? [])
  throw new Refusal(formatTooManyLeft(`namespace ${namespace}`, processes))
}

function parseNamespace(pod: string | undefined): string | undefined {
  return pod?.includes('/') ? pod.split('/', 1)[0] : undefined
}
