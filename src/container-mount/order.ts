import { quoted } from '../refusal/refusal.ts'
import type { MapRuleGrant } from '../request/map-rule.ts'

/** One volume mount of a container that is to become a mapped clone. In JSON it goes to another process. */
export interface CloneRequest {
  /** The pod's name of the volume, else the mount's source (hostPath). */
  volume: string
  /** Path in the container. */
  destination: string
  /** What the runtime would have bound: below `<kubeletDir>/pods/<uid>/`, or a path of the node. */
  source: string
  /** The runtime's mount options: `ro`, `rbind`, `rprivate`, … */
  options: readonly string[]
  /** The group that the container sees; undefined: as the volume's own mount says (`isOwn`). */
  group: number | undefined
  /** What the refusal points at: `annotation modekeep/group is "data=2000"`, or what else asks for it. */
  asked: string
  /** modekeep's own volume: at `source` stands a mount on record. */
  isOwn: boolean
  /** The types of file system that the node's rule allows; undefined: any. */
  fsTypes?: readonly string[] | undefined
  /** What each rule that allows it permits, with the types of file system that it is for; undefined: as a rule without keys. */
  grants?: readonly MapRuleGrant[] | undefined
  /** The root gets the set-gid bit: of an emptyDir always, of other volumes by the pod's annotation and a rule. */
  setGid?: 'emptyDir' | 'requested' | undefined
}

/** What a container needs before it is created. */
export interface ContainerCloneRequest {
  /** The runtime's name of it: see isContainerId. */
  container: string
  containerName: string
  sandbox: string
  pod: { namespace: string; name: string; uid: string }
  /** Its volumes' ids are those that `<kubeletDir>/pods/<uid>/userns` maps. */
  hasUserNamespace: boolean
  /** The runtime tells the groups of its processes, and they are in those that are asked for; undefined: it tells none. */
  isMember?: true | undefined
  /** Kubelet's root directory, as it writes it in the sources. */
  kubeletDir: string
  clones: readonly CloneRequest[]
  /** It may start without what is not possible. */
  isOptional: boolean
}

/** What becomes of each of an order's mounts, in its order. */
export type CloneOutcome =
  /** The runtime is to bind this path instead, and to restrict it as the clone is: a current runc clears what it is not given. */
  | { do: 'replace'; source: string; restrictions?: readonly string[] }
  /** The mount stays as it is: the volume shows its group without a clone. */
  | { do: 'keep' }
  /** It stays as it is, as the order is optional and this is not possible. */
  | { do: 'without'; why: string }

/** What a worker is doing for a container; `volume`: the index of the clone. */
export interface AttachStep {
  step: 'lock' | 'open' | 'records' | 'attach'
  volume?: number
}

/** Mounts of a container, of which some may be modekeep's own volumes. In JSON it goes to another process. */
export interface OwnMountsRequest
  extends Pick<ContainerCloneRequest, 'container' | 'containerName' | 'pod' | 'kubeletDir'> {
  mounts: readonly Pick<CloneRequest, 'destination' | 'source'>[]
}

export interface ContainerOutcome {
  mounts: readonly CloneOutcome[]
}

/** What the runtime has told of its containers, at a moment. */
export interface RuntimeSnapshot {
  /** Milliseconds since 1970: what was made later is left alone. */
  at: number
  /** Created and not started: their clones are still needed. */
  created: readonly string[]
  started: readonly string[]
  /** Of both those that have no clone: they were created without what was made for them. */
  unmapped: readonly string[]
  /** It was told a while ago: a container that was in the making then has started by now, or never will. */
  isLater?: true
}

/** A runtime may tell of a container a moment after its plugin has answered. */
export const CREATION_GRACE_MS = 5000

/** The pod's annotation that lets its containers start without what is not possible. */
export const OPTIONAL_ANNOTATION = 'modekeep/group-optional'

/** The option of a mount that takes part in what is mounted elsewhere: a mapped clone cannot. */
export function findPropagation(options: readonly string[]): string | undefined {
  return options.find((option) => /^r?(shared|slave)$/.test(option))
}

/** What people read of a volume that cannot be shown so. @param why without a way out, or with one after a colon */
export function formatRefusal({ asked, volume, destination }: CloneRequest, why: string): string {
  const name = volume === destination ? quoted(volume) : `${quoted(volume)} (at ${quoted(destination)})`
  return asked === '' ? `volume ${name} ${why}` : `${asked}, but volume ${name} ${why}`
}

/** The way out of what this volume cannot. */
export const LEAVE_OUT = `leave the volume out of the annotation, or write annotation ${OPTIONAL_ANNOTATION} "true" to start without`

const NAMESPACE_REMEDY = 'use ownership "walk", or leave "hostUsers" out'

/** The way out where a volume cannot be mapped. */
export function findRemedy({ isOwn }: CloneRequest): string {
  return isOwn ? NAMESPACE_REMEDY : LEAVE_OUT
}
