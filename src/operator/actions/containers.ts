import { type ContainerRecord, containersSeen, listContainers, mayRun } from '../../store/container-record.ts'
import type { Store } from '../../store/places.ts'
import { runningPlugin, whyNotAsked } from '../../store/plugin-record.ts'

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
  /** Whether its processes are in that group; null: the runtime does not tell. */
  isMember: boolean | null
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

/** A container that runs without the group it asked for, or of which nobody can tell. */
export interface ContainerFinding
  extends Pick<ContainerStatus, 'container' | 'name' | 'pod' | 'volume' | 'group' | 'reason'> {
  state: 'without' | 'unreadable'
  /** A container that runs gets no other mounts: only a new one does. */
  action: 'none'
  /** What a person can do. */
  remedy: string
}

/** What no heal can repair of the containers that may run. */
export function findContainerProblems(store: Store): ContainerFinding[] {
  const away = whyNotAsked(runningPlugin(store))
  const isThere = containersSeen(store)
  return listContainers(store).flatMap(({ container, record, problem }): ContainerFinding[] => {
    if (problem !== undefined) {
      if (!isThere(container)) return []
      const about = { name: '', pod: '', volume: '', group: null, reason: problem.message }
      return [{ container, ...about, state: 'unreadable', action: 'none', remedy: '"modekeep doctor" says what to do' }]
    }
    if (record === undefined || !mayRun(store, record)) return []
    return toContainerStatuses(record).flatMap(({ name, pod, volume, group, state, reason }): ContainerFinding[] => {
      if (state !== 'without') return []
      const remedy = formatContainerRemedy(record.pod, away)
      return [{ container, name, pod, volume, group, reason, state, action: 'none', remedy }]
    })
  })
}

function formatContainerRemedy({ namespace, name }: ContainerRecord['pod'], away: string | undefined): string {
  const anew = `kubectl delete pod ${name} --namespace ${namespace}, so that its containers are created anew`
  return away === undefined ? anew : `${away}; then ${anew}`
}

/** Every volume that the container runtime's plugin was asked for, of containers that may still be there. */
export function readContainerStatuses(store: Store): ContainerStatus[] {
  const isThere = containersSeen(store)
  return listContainers(store).flatMap(({ container, record, problem }) => {
    if (problem !== undefined)
      return isThere(container) ? [{ ...UNREADABLE_CONTAINER, container, reason: problem.message }] : []
    return record === undefined || !mayRun(store, record) ? [] : toContainerStatuses(record)
  })
}

const NO_SET_GID_REASON =
  'its root has no set-gid bit, so what root creates there does not get the group: write annotation modekeep/set-gid "root" (a rule of "map" has to permit it), or run "chmod g+s" for the root on the node'

const UNREADABLE_CONTAINER: Omit<ContainerStatus, 'container' | 'reason'> = {
  name: '',
  pod: '',
  volume: '',
  destination: '',
  source: '',
  onDisk: null,
  group: null,
  isMember: null,
  state: 'unreadable',
  since: null,
}

function toContainerStatuses({
  container,
  containerName,
  pod,
  at,
  isMember,
  state,
  volumes,
}: ContainerRecord): ContainerStatus[] {
  return volumes.map(({ volume, destination, source, from, to, hasPlainRoot, why }) => ({
    container,
    name: containerName,
    pod: `${pod.namespace}/${pod.name}`,
    volume,
    destination,
    source,
    onDisk: from ?? null,
    group: to ?? null,
    isMember: isMember ?? null,
    state: why !== undefined ? 'without' : state === 'created' ? 'created' : 'mapped',
    reason: why ?? (hasPlainRoot ? NO_SET_GID_REASON : ''),
    since: new Date(at).toISOString(),
  }))
}
