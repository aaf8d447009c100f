import { findPodDirectory, hasPodUserNamespace } from '../../kernel/mount-table/kubelet-volume.ts'
import { formatMountRestrictions, parseMountFlags } from '../../kernel/mount-table/mount-flags.ts'
import {
  type ContainerRecord,
  type ContainerVolume,
  createContainerExistenceCheck,
  listContainerRecords,
  mayContainerRun,
} from '../../state/container-record.ts'
import type { MountRecord } from '../../state/mount-record.ts'
import { explainInactivePlugin, findRunningPlugin } from '../../state/process-records.ts'
import type { Store } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'

/** A volume of a container whose pod requested a group. */
export interface ContainerStatus {
  /** The runtime's id of the container; `name` is the pod's name for it. */
  container: string
  name: string
  /** NAMESPACE/NAME of the pod. */
  pod: string
  /** Kubelet's name of the volume, or the path of a hostPath. */
  volume: string
  /** The mount point in the container; `source` is the path that would be mounted there without modekeep. */
  destination: string
  source: string
  /** The group of the volume's root, if it was inspected; `group` is the one that the container sees instead. */
  onDisk: number | null
  group: number | null
  /** True if the container's processes are in that group; null: the runtime does not report it. */
  isMember: boolean | null
  /**
   * `created`: the runtime has not reported a start yet. `without`: the container runs without the group.
   * `unreadable`: the record cannot be read, so only the container's id is known.
   */
  state: 'created' | 'mapped' | 'without' | 'unreadable'
  /** Reason for `without`, or the remedy for an unreadable record; '' otherwise. */
  reason: string
  /** Creation time in ISO 8601; null if unknown. */
  since: string | null
}

/** A container that runs without the requested group, or whose record cannot be read. */
export interface ContainerFinding
  extends Pick<ContainerStatus, 'container' | 'name' | 'pod' | 'volume' | 'group' | 'reason'> {
  state: 'without' | 'unreadable'
  /** Mounts of a running container cannot be changed. Only a new container gets others. */
  action: 'none'
  /** Remedy for the operator. */
  remedy: string
}

/** Finds the problems of running containers that heal cannot repair. */
export function findContainerProblems(store: Store): ContainerFinding[] {
  const notAsked = explainInactivePlugin(findRunningPlugin(store))
  const isThere = createContainerExistenceCheck(store)
  return listContainerRecords(store).flatMap(({ container, record, problem }): ContainerFinding[] => {
    if (problem !== undefined) {
      if (!isThere(container)) return []
      const about = { name: '', pod: '', volume: '', group: null, reason: problem.message }
      return [{ container, ...about, state: 'unreadable', action: 'none', remedy: '"modekeep doctor" says what to do' }]
    }
    if (record === undefined || !mayContainerRun(store, record)) return []
    return createContainerStatuses(record).flatMap(
      ({ name, pod, volume, group, state, reason }): ContainerFinding[] => {
        if (state !== 'without') return []
        const remedy = formatContainerRemedy(record.pod, notAsked)
        return [{ container, name, pod, volume, group, reason, state, action: 'none', remedy }]
      },
    )
  })
}

function formatContainerRemedy({ namespace, name }: ContainerRecord['pod'], notAsked: string | undefined): string {
  const recreate = `kubectl delete pod ${name} --namespace ${namespace}, so that its containers are created anew`
  return notAsked === undefined ? recreate : `${notAsked}; then ${recreate}`
}

/** Lists the volumes for which containers requested a group, except those of containers that are certainly gone. */
export function readContainerStatuses(store: Store): ContainerStatus[] {
  const isThere = createContainerExistenceCheck(store)
  return listContainerRecords(store).flatMap(({ container, record, problem }) => {
    if (problem !== undefined)
      return isThere(container) ? [{ ...UNREADABLE_CONTAINER_STATUS, container, reason: problem.message }] : []
    return record === undefined || !mayContainerRun(store, record) ? [] : createContainerStatuses(record)
  })
}

const NO_SET_GID_REASON =
  'its root has no set-gid bit, so what root creates there does not get the group: write annotation modekeep/set-gid "root" (a rule of "map" has to permit it), or run "chmod g+s" for the root on the node'

/** Returns why a mapped volume's root may not do for the pod, with the remedy; '' if nothing is known. */
function findRootReason(mounted: ContainerVolume): string {
  if (mounted.closedRoot !== undefined) return formatClosedRootReason(mounted)
  return mounted.hasPlainRoot ? NO_SET_GID_REASON : ''
}

function formatClosedRootReason({ closedRoot, to }: ContainerVolume): string {
  const plan = `"modekeep plan DIR --fsgroup ${to}" lists what it or kubelet's walk would change`
  return (
    `its root is ${closedRoot} on disk, so the group cannot create files there: write annotation modekeep/group-access "grant", ` +
    `which has the volume walked (a rule of "map" has to permit it; ${plan}), or run "chmod g+rwxs" for the root on the node`
  )
}

const UNREADABLE_CONTAINER_STATUS: Omit<ContainerStatus, 'container' | 'reason'> = {
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

function createContainerStatuses(record: ContainerRecord): ContainerStatus[] {
  const { pod, isMember, state } = record
  return record.volumes.map((mounted) => ({
    container: record.container,
    name: record.containerName,
    pod: `${pod.namespace}/${pod.name}`,
    volume: mounted.volume,
    destination: mounted.destination,
    source: mounted.source,
    onDisk: mounted.from ?? null,
    group: mounted.to ?? null,
    isMember: isMember ?? null,
    state: mounted.why !== undefined ? 'without' : state === 'created' ? 'created' : 'mapped',
    reason: mounted.why ?? findRootReason(mounted),
    since: new Date(record.at).toISOString(),
  }))
}

/** Options that protect the node or the volume. A missing `noatime` only costs time. */
const PROTECTIVE_MOUNT_OPTIONS: readonly string[] = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow']

/**
 * Finds the mount options that the containers of a recorded mount may lack. runc 1.2 and newer clears them, unless
 * "modekeep nri" passes them to the runtime, or the kernel locks them because the pod has a user namespace.
 * @param isGivenByPlugin "modekeep nri" runs and is registered with the runtime
 */
export function findUnenforcedMountOptions(
  { host }: Pick<Session, 'host'>,
  { directory, request }: MountRecord,
  isGivenByPlugin: boolean,
): string[] {
  if (isGivenByPlugin || findPodDirectory(directory) === undefined) return []
  // Kubelet itself makes a read-only volume read-only in the runtime's request.
  const { set } = parseMountFlags(request.mountOptions, false)
  const isSetByKubelet = (option: string) => option === 'ro' && request.readOnly
  const options = formatMountRestrictions(set).filter(
    (option) => PROTECTIVE_MOUNT_OPTIONS.includes(option) && !isSetByKubelet(option),
  )
  return options.length === 0 || hasPodUserNamespace(host, directory) ? [] : options
}
