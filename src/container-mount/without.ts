import { containerRecords, isContainerId } from '../store/container-record.ts'
import type { Session } from '../store/session.ts'
import type { ContainerOrder } from './order.ts'
import { recordFor } from './record.ts'
import { holdContainer } from './stand.ts'

/** Keeps on record that a container does without what it asked for. What is known of it already is better known. */
export async function noteWithout(session: Session, order: ContainerOrder, why: string): Promise<void> {
  const { container, clones } = order
  if (!isContainerId(container)) return
  using _ = await holdContainer(session, container)
  if (containerRecords.has(session, container)) return
  const volumes = clones.map(({ volume, destination, source, isOwn, group }) => {
    return { volume, destination, source, isOwn, to: group, why }
  })
  containerRecords.write(session, recordFor(session.host, order, 'started', volumes))
}
