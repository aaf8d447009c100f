import { containerRecords, isContainerId } from '../store/container-record.ts'
import type { Session } from '../store/session.ts'
import type { ContainerOrder } from './order.ts'
import { holdContainer } from './stand.ts'

/** Keeps on record that a container does without what it asked for. What is known of it already is better known. */
export async function noteWithout(session: Session, order: ContainerOrder, why: string): Promise<void> {
  const { container, containerName, sandbox, pod, kubeletDir, clones } = order
  if (!isContainerId(container)) return
  using _ = await holdContainer(session, container)
  if (containerRecords.has(session, container)) return
  containerRecords.write(session, {
    container,
    containerName,
    sandbox,
    pod,
    kubeletDir,
    boot: session.host.bootId(),
    at: Date.now(),
    state: 'started',
    volumes: clones.map(({ volume, destination, source, isOwn, group }) => ({
      volume,
      destination,
      source,
      isOwn,
      to: group,
      why,
    })),
  })
}
