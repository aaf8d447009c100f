import { type ContainerRecord, listContainers } from '../../store/container-record.ts'
import type { Store } from '../../store/places.ts'

/** A volume of a container that asked for a group. */
export interface ContainerStatus {
  /** The runtime's name of the container, and the pod's. */
  container: string
  name: string
  /** Namespace and name. */
  pod: string
  /** Kubelet's name of it, or the path of a hostPath. */
  volume: string
  /** Where it is in the container, and what is there without modekeep. */
  destination: string
  source: string
  /** The group of its root, where it was looked at, and the one that the container sees in its place. */
  onDisk: number | null
  group: number | null
  /**
   * `created`: it has not started yet, as far as the runtime told; `without`: the container does without the group;
   * `unreadable`: nothing but its name is known, as its record cannot be read.
   */
  state: 'created' | 'mapped' | 'without' | 'unreadable'
  /** Why it does without, or what is to become of the record; '' otherwise. */
  reason: string
  /** ISO 8601: when it was created; null where that is not known. */
  since: string | null
}

/** Every volume that the container runtime's plugin was asked for, of containers that are still there. */
export function statusOfContainers(store: Store): ContainerStatus[] {
  return listContainers(store).flatMap(({ container, record, problem }) => {
    if (problem !== undefined) return [{ ...UNKNOWN, container, reason: problem.message }]
    return record === undefined ? [] : volumesOf(record)
  })
}

const UNKNOWN = {
  ...{ name: '', pod: '', volume: '', destination: '', source: '', since: null },
  ...{ onDisk: null, group: null, state: 'unreadable' as const },
}

function volumesOf({ container, containerName, pod, at, state, volumes }: ContainerRecord): ContainerStatus[] {
  return volumes.map(({ volume, destination, source, from, to, why }) => ({
    container,
    name: containerName,
    pod: `${pod.namespace}/${pod.name}`,
    volume,
    destination,
    source,
    onDisk: from ?? null,
    group: to ?? null,
    state: why !== undefined ? 'without' : state === 'created' ? 'created' : 'mapped',
    reason: why ?? '',
    since: new Date(at).toISOString(),
  }))
}
