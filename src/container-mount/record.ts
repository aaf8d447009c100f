import type { Host } from '../host/host.ts'
import type { ContainerRecord, ContainerVolume } from '../store/container-record.ts'
import type { ContainerCloneRequest } from './order.ts'

/** What is kept of a container from now on. */
export function recordFor(
  host: Host,
  { container, containerName, sandbox, pod, isMember, kubeletDir }: ContainerCloneRequest,
  state: ContainerRecord['state'],
  volumes: ContainerVolume[],
): ContainerRecord {
  const [boot, at] = [host.bootId(), Date.now()]
  return { container, containerName, sandbox, pod, isMember, kubeletDir, boot, at, state, volumes }
}
