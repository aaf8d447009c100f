import type { MapRuleGrant } from '../config/map-rule.ts'
import { attributeFaultToAnnotation, type Fault, prefixFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import type { Host } from '../kernel/host.ts'
import type { ContainerRecord, ContainerVolume } from '../state/container-record.ts'

/** Request for a mapped clone of one volume mount of a container. It is sent to the worker as JSON. */
export interface CloneRequest {
  /** Kubelet's name of the volume, or the source of a hostPath. */
  volume: string
  destination: string
  /** Path that the runtime would bind: below `<kubeletDir>/pods/<uid>/`, or elsewhere on the node. */
  source: string
  /** The runtime's mount options: `ro`, `rbind`, `rprivate`, … */
  options: readonly string[]
  /** Group that the container sees. Undefined for modekeep's own volume (`isOwn`), whose mount record has it. */
  group: number | undefined
  /** Prefix of refusals: `annotation modekeep/group is "data=2000"`, or that the pod has a user namespace. */
  requestedBy: string
  /** Whether `source` is modekeep's own volume, which has a mount record. */
  isOwn: boolean
  /** Types of file system that the node's rule allows; undefined: any. */
  fsTypes?: readonly string[] | undefined
  /** Grants of each rule that allows the volume, with its types of file system; undefined: those of a rule without keys. */
  grants?: readonly MapRuleGrant[] | undefined
  /** Sets the set-gid bit on the root: always for an emptyDir, for other volumes if the pod's annotation and a rule say so. */
  setGid?: 'emptyDir' | 'requested' | undefined
  /** Lets a volume without content have the group on disk; `unrecorded`: its pod ends with it. Never for a hostPath. */
  freshGroup?: 'recorded' | 'unrecorded' | undefined
  /** Requests a recorded walk that gives the group access to the volume on disk, before the first container. */
  groupAccess?: 'grant' | undefined
  /** Why the volume is not mapped. Only of a container that may start without it. */
  refusal?: Fault | undefined
}

/** Request for all mount clones of a container that is about to be created. The worker receives the request as JSON. */
export interface ContainerCloneRequest {
  /** ID of the container in the runtime, see isContainerId. */
  container: string
  containerName: string
  sandbox: string
  pod: { namespace: string; name: string; uid: string }
  /** Whether `<kubeletDir>/pods/<uid>/userns` maps the ids of its volumes. */
  hasUserNamespace: boolean
  /** True if the runtime reported the groups of its processes, and they contain every requested group. */
  isMember?: true | undefined
  /** User id of its process in the container; undefined: the runtime does not report it. */
  processUid?: number | undefined
  /** All group ids of its process in the container. */
  processGids?: readonly number[] | undefined
  /** Kubelet's root directory, as kubelet writes it in the sources. */
  kubeletDir: string
  clones: readonly CloneRequest[]
  /** Whether the container may start without clones that cannot be made. */
  isOptional: boolean
}

/** Refuses a container until the walks that its pod requests are done, also if its group is optional. */
export class PendingGrantRefusal extends Refusal {}

export type CloneOutcome =
  /** The runtime binds `source` instead. It needs the restrictions too, because a current runc clears those it is not given. */
  | { do: 'replace'; source: string; restrictions?: readonly string[] }
  /** The mount stays unchanged, because it shows the group without a clone. */
  | { do: 'keep' }
  /** The mount stays unchanged, because the clone cannot be made and is optional. */
  | { do: 'without'; why: string }

/** Progress that a worker reports. `volume` is the index of the clone. */
export interface CloneAttachStep {
  step: 'lock' | 'open' | 'records' | 'attach'
  volume?: number
}

/** Mounts of a container that may be modekeep's own volumes. It is sent to the worker as JSON. */
export interface OwnVolumeMountsRequest
  extends Pick<ContainerCloneRequest, 'container' | 'containerName' | 'pod' | 'kubeletDir'> {
  mounts: readonly Pick<CloneRequest, 'destination' | 'source'>[]
}

export interface ContainerCloneOutcome {
  mounts: readonly CloneOutcome[]
}

/** Snapshot of the runtime's container list. It is sent to the worker as JSON. */
export interface RuntimeSnapshot {
  /** Milliseconds since 1970. Containers recorded later are skipped. */
  at: number
  /** IDs of containers that are created but not started. They still need their clones. */
  created: readonly string[]
  started: readonly string[]
  /** IDs of created and started containers that have no clone: they were created without those made for them. */
  unmapped: readonly string[]
  /** The snapshot is `CONTAINER_CREATION_GRACE_MS` old: a container that was being created then has started, or never will. */
  isLater?: true
}

/** A container may be missing from the runtime's list for a moment after the plugin has answered for it. */
export const CONTAINER_CREATION_GRACE_MS = 5000

/** A pod with this annotation starts without clones that cannot be made. */
export const GROUP_OPTIONAL_ANNOTATION = 'modekeep/group-optional'

/** Finds the option for mount propagation, which a mapped clone does not support. */
export function findPropagationOption(options: readonly string[]): string | undefined {
  return options.find((option) => /^r?(shared|slave)$/.test(option))
}

/** Names the clone, and the pod's request for it, in a fault. */
export function createCloneFault({ requestedBy, volume, destination }: CloneRequest, fault: Fault): Fault {
  const name = volume === destination ? quoteValue(volume) : `${quoteValue(volume)} (at ${quoteValue(destination)})`
  const named = prefixFault(fault, `volume ${name} `)
  return requestedBy === '' ? named : attributeFaultToAnnotation(named, requestedBy)
}

/** Remedy for a volume of another driver that cannot be mapped. */
export const LEAVE_VOLUME_OUT_REMEDY = `leave the volume out of the annotation, or write annotation ${GROUP_OPTIONAL_ANNOTATION} "true" to start without`

const USER_NAMESPACE_REMEDY = 'use ownership "walk", or leave "hostUsers" out'

export function findCloneRemedy({ isOwn }: CloneRequest): string {
  return isOwn ? USER_NAMESPACE_REMEDY : LEAVE_VOLUME_OUT_REMEDY
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
