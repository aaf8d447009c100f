import {
  type ContainerRecord,
  containerRecords,
  containersOnRecord,
  containersSeen,
  hasClones,
  isContainerId,
  mayRun,
} from '../store/container-record.ts'
import type { Found } from '../store/record.ts'
import { orWarn, type Session } from '../store/session.ts'
import { CREATION_GRACE_MS, type RuntimeSnapshot } from './order.ts'
import { restoreRootBitsOf } from './root-bits.ts'
import { holdContainer, lockedContainers, removeEmptyStand, standing, takeDown, tryHoldContainer } from './stand.ts'

/**
 * Takes the node's clones away, without which another driver can unmount its volume.
 * @param as `started`: the container has mounts of its own; `gone`: it ended, or will never be, and nothing is left of it
 */
export async function release(session: Session, container: string, as: 'started' | 'gone'): Promise<void> {
  if (!isContainerId(container)) return
  using _ = await holdContainer(session, container)
  const { record } = as === 'gone' ? containerRecords.find(session, container) : {}
  settle(session, container, as)
  if (record !== undefined) await restoreRootBitsOf(session, record.volumes)
}

/** Call it under the container's lock. @returns whether anything stood */
function settle(session: Session, container: string, state: 'started' | 'gone'): boolean {
  const hadMounts = takeDown(session, container)
  if (state === 'gone') {
    containerRecords.remove(session, container)
    return hadMounts
  }
  const { record } = containerRecords.find(session, container)
  if (record !== undefined && record.state !== 'started') containerRecords.write(session, { ...record, state })
  return hadMounts
}

/** Milliseconds: from creation to start a container takes seconds. */
const LONG = 10 * 60 * 1000

/**
 * Puts in order what missed events, dead jobs and a reboot have left, by what the runtime knows or, where that is not
 * asked, by what the node tells. Nothing else is touched, nor what a job is at work on.
 * @param isDry nothing is changed
 * @returns the containers of which something was taken away, or would be
 */
export function reconcile(session: Session, known?: RuntimeSnapshot, isDry = false): string[] {
  const touched: string[] = []
  const stand = standing(session)
  const isThere = containersSeen(session)
  for (const container of [...new Set([...containersOnRecord(session), ...stand])].sort()) {
    session.isAlive?.()
    orWarn(session, `could not put the mounts of container ${container} in order`, () => {
      using lock = tryHoldContainer(session, container)
      // Read again under its lock.
      const found = lock === undefined ? {} : containerRecords.find(session, container)
      const state = lock === undefined ? 'keep' : wanted(session, container, found, known, isThere)
      if (state === 'keep') return
      const hasMounts = isDry ? stand.includes(container) : settle(session, container, state)
      if (hasMounts || state === 'gone' || found.record?.state === 'created') touched.push(container)
    })
  }
  if (!isDry) {
    removeLoneLocks(session)
    orWarn(session, 'could not remove the place of clones', () => removeEmptyStand(session))
  }
  return touched
}

/** Of jobs that died before they wrote a record, or after they removed it. */
function removeLoneLocks(session: Session): void {
  const others = new Set([...containersOnRecord(session), ...standing(session)])
  for (const container of lockedContainers(session)) {
    if (others.has(container)) continue
    // Whoever gives it back removes it.
    orWarn(session, `could not remove the lock of container ${container}`, () => {
      tryHoldContainer(session, container)?.[Symbol.dispose]()
    })
  }
}

function wanted(
  session: Session,
  container: string,
  { record, problem }: Found<ContainerRecord>,
  known: RuntimeSnapshot | undefined,
  isThere: (container: string) => boolean,
): 'keep' | 'started' | 'gone' {
  if (problem !== undefined) return wantedOfUnreadable(container, known, isThere)
  // Nobody can tell what it was: what stands of it goes, unless it is still to be bound.
  if (record === undefined) {
    return known?.created.includes(container) && !known.unmapped.includes(container) ? 'keep' : 'gone'
  }
  if (!mayRun(session, record)) return 'gone'
  if (known === undefined) return record.state === 'created' && Date.now() - record.at > LONG ? 'started' : 'keep'
  if (record.at > known.at) return 'keep'
  if (known.unmapped.includes(container) && hasClones(record)) return 'gone'
  if (known.created.includes(container)) return 'keep'
  if (known.started.includes(container)) return 'started'
  const isNew = record.state === 'created' && known.at - record.at < CREATION_GRACE_MS
  // By now what was told is not all there is.
  if (known.isLater) return isNew ? 'gone' : 'keep'
  return isNew ? 'keep' : 'gone'
}

/** Only its name is known. While it may be there the record stays: it keeps others from giving its volumes another group. */
function wantedOfUnreadable(
  container: string,
  known: RuntimeSnapshot | undefined,
  isThere: (container: string) => boolean,
): 'keep' | 'started' | 'gone' {
  if (known === undefined) return isThere(container) ? 'keep' : 'gone'
  if (known.created.includes(container)) return 'keep'
  return known.started.includes(container) ? 'started' : 'gone'
}
