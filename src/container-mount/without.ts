import { containerRecords, hasClones, isContainerId } from '../store/container-record.ts'
import type { Session } from '../store/session.ts'
import type { ContainerCloneRequest } from './order.ts'
import { recordFor } from './record.ts'
import { holdContainer, takeDown } from './stand.ts'

/**
 * Keeps on record that a container does without what it asked for. Why it does is better known where that is on record;
 * what was made for it, which it was created without, goes.
 */
export async function noteWithout(session: Session, order: ContainerCloneRequest, why: string): Promise<void> {
  const { container, clones } = order
  if (!isContainerId(container)) return
  using _ = await holdContainer(session, container)
  const { record, problem } = containerRecords.find(session, container)
  if (problem !== undefined || (record !== undefined && !hasClones(record))) return
  takeDown(session, container)
  const volumes = clones.map(({ volume, destination, source, isOwn, group }) => {
    return { volume, destination, source, isOwn, to: group, why }
  })
  containerRecords.write(session, recordFor(session.host, order, 'started', volumes))
}
