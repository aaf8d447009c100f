import type { Host } from '../host/host.ts'
import {
  type ContainerRecord,
  type ContainerVolume,
  containerRecords,
  hasClones,
  isContainerId,
} from '../store/container-record.ts'
import type { Session } from '../store/session.ts'
import type { ContainerCloneRequest } from './clone-request.ts'
import { lockContainer, removeClones } from './clone-staging.ts'

/**
 * Records that a container runs without its clones, and removes those that were made for it. An unreadable record is kept.
 * A record without clones is kept too, because its reasons are more precise.
 */
export async function recordWithout(session: Session, request: ContainerCloneRequest, reason: string): Promise<void> {
  const { container, clones } = request
  if (!isContainerId(container)) return
  using _ = await lockContainer(session, container)
  const { record, problem } = containerRecords.find(session, container)
  if (problem !== undefined || (record !== undefined && !hasClones(record))) return
  removeClones(session, container)
  const volumes = clones.map(({ volume, destination, source, isOwn, group }) => {
    return { volume, destination, source, isOwn, to: group, why: reason }
  })
  containerRecords.write(session, createContainerRecord(session.host, request, 'started', volumes))
}

export function createContainerRecord(
  host: Host,
  { container, containerName, sandbox, pod, isMember, kubeletDir }: ContainerCloneRequest,
  state: ContainerRecord['state'],
  volumes: ContainerVolume[],
): ContainerRecord {
  const [boot, at] = [host.bootId(), Date.now()]
  return { container, containerName, sandbox, pod, isMember, kubeletDir, boot, at, state, volumes }
}
