import { containerRecords, isContainerId, listContainers, mayRun } from '../store/container-record.ts'
import { orWarn, type Session } from '../store/session.ts'
import type { Known } from './order.ts'
import { holdContainer, removeEmptyStand, standing, takeDown, tryHoldContainer } from './stand.ts'

/** A container has its own mounts now: the node's go, or another driver could not unmount its volume. */
export async function releaseStarted(session: Session, container: string): Promise<void> {
  if (!isContainerId(container)) return
  using _ = await holdContainer(session, container)
  settle(session, container, 'started')
}

/** A container is gone, or will never be: nothing is left of it. */
export async function releaseGone(session: Session, container: string): Promise<void> {
  if (!isContainerId(container)) return
  using _ = await holdContainer(session, container)
  settle(session, container, 'gone')
}

/** Call it under the container's lock. */
function settle(session: Session, container: string, state: 'started' | 'gone'): void {
  takeDown(session, container)
  if (state === 'gone') {
    containerRecords.remove(session, container)
    return
  }
  const { record } = containerRecords.find(session, container)
  if (record !== undefined && record.state !== 'started') containerRecords.write(session, { ...record, state })
}

/** Milliseconds: from creation to start a container takes seconds. */
const LONG = 10 * 60 * 1000

/**
 * Puts in order what missed events, dead jobs and a reboot have left, by what the runtime knows or, where that is not
 * asked, by what the node tells. Nothing else is touched, nor what a job is at work on.
 * @param isDry nothing is changed
 * @returns the containers of which something was taken away, or would be
 */
export function reconcile(session: Session, known?: Known, isDry = false): string[] {
  const touched: string[] = []
  const records = listContainers(session)
  const found = new Map(records.map(({ container, record }) => [container, record]))
  const stand = standing(session)
  for (const container of [...new Set([...found.keys(), ...stand])].sort()) {
    orWarn(session, `could not put the mounts of container ${container} in order`, () => {
      using lock = tryHoldContainer(session, container)
      // Read again under its lock.
      const { record } = lock === undefined ? {} : containerRecords.find(session, container)
      const state = lock === undefined ? 'keep' : wanted(session, container, record, known)
      if (state === 'keep') return
      if (isDry) {
        if (state === 'gone' || record?.state !== 'started' || stand.includes(container)) touched.push(container)
        return
      }
      const hadMounts = takeDown(session, container)
      if (hadMounts || state === 'gone' || record?.state !== 'started') touched.push(container)
      settle(session, container, state)
    })
  }
  if (!isDry) orWarn(session, 'could not remove the place of clones', () => removeEmptyStand(session))
  return touched
}

type Found = ReturnType<typeof listContainers>[number]['record']

function wanted(
  session: Session,
  container: string,
  record: Found,
  known: Known | undefined,
): 'keep' | 'started' | 'gone' {
  // Nobody can tell what it was: what stands of it goes.
  if (record === undefined) return 'gone'
  if (!mayRun(session, record)) return 'gone'
  if (known === undefined) return record.state === 'created' && Date.now() - record.at > LONG ? 'started' : 'keep'
  if (record.at > known.at || known.created.includes(container)) return 'keep'
  return known.started.includes(container) ? 'started' : 'gone'
}
