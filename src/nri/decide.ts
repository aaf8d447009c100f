import { type CloneOrder, type ContainerOrder, propagationOf } from '../container-mount/order.ts'
import { WRITTEN_PLUGINS } from '../mount-table/kubelet-sub-path.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { HOST_PATH, type MapRule, mayMap } from '../request/map-rule.ts'
import { type Asked, askedOf, isAsking, isOptional } from './asked.ts'
import type { Container, PodSandbox } from './messages.ts'
import { isOwn, type MountedVolume, type PodVolumes, podDirectory, volumeOf } from './volume.ts'

/** What a decision depends on beside what the runtime tells. */
export interface Node {
  /** Kubelet's root directory, as it writes it in the sources of mounts. */
  readonly kubeletDir: string
  readonly map: readonly MapRule[]
}

const LONGEST_LIST = 10
/** Of one container: more could not be mapped in its time, and no pod needs them. */
const MOST_MOUNTS = 200
/** What asks for a clone of modekeep's own volume, as a refusal names it. */
const OWN_ASKED = 'the pod has a user namespace of its own'

/** Whether a container may need a clone: all others are answered at once. */
export function isConcerned(pod: PodSandbox, container: Container): boolean {
  return isAsking(pod.annotations) || (hasUserNamespace(container) && container.mounts.some(isPerhapsOwn))
}

const isPerhapsOwn = ({ source }: { source: string }) =>
  /\/volumes\/(modekeep~fs|kubernetes\.io~csi)\/|\/volume-subpaths\//.test(source)

export function hasUserNamespace({ linux }: Container): boolean {
  return linux?.namespaces.some(({ type }) => type === 'user') ?? false
}

/**
 * Which mounts of a container are to be clones. Pure.
 * @param podGroups those of the pod's processes, where the runtime does not tell the container's with it but was asked
 * @returns undefined where none is
 * @throws {Refusal} for an annotation that cannot be read, that names what cannot be had, or that asks for more than the
 *   node's rules allow
 */
export function decide(
  pod: PodSandbox,
  container: Container,
  volumes: PodVolumes,
  { kubeletDir, map }: Node,
  podGroups?: readonly number[],
): ContainerOrder | undefined {
  const mayStartWithout = isOptional(pod.annotations)
  const asked = askedOf(pod.annotations)
  const inUserNamespace = hasUserNamespace(container)
  const groups = container.user === undefined ? podGroups : [container.user.gid, ...container.user.additionalGids]
  const podDir = podDirectory(kubeletDir, checkedUid(pod))
  const mounted = container.mounts.flatMap((mount) => volumeOf(mount, podDir, volumes) ?? [])
  const wanted = mounted.flatMap((volume) => {
    const given = asked && groupFor(asked, volume)
    return given !== undefined || (volume.isOwn && inUserNamespace) ? [{ volume, given }] : []
  })
  if (wanted.length > MOST_MOUNTS) throw new Refusal(tooMany(asked, wanted.length, container.name))
  const faults: string[] = []
  const clones = wanted.flatMap(({ volume, given }): CloneOrder[] => {
    if (asked === undefined || given === undefined) return [orderFor(volume, undefined, OWN_ASKED)]
    const fault = faultOf(volume, given, podDir)
    if (fault !== undefined) {
      faults.push(but(asked, fault))
      return []
    }
    const { namespace } = pod
    const allowed = mayMap(map, { namespace, kind: volume.kind, volume: volume.name, group: given })
    if ('refusal' in allowed) {
      faults.push(but(asked, allowed.refusal))
      return []
    }
    return [{ ...orderFor(volume, given, asked.shown), fsTypes: allowed.fsTypes }]
  })
  if (asked !== undefined) {
    faults.push(...unknownNames(asked, mounted, volumes), ...notMember(asked, clones, container.name, groups))
  }
  if (faults.length > 0) throw new Refusal(faults)
  if (clones.length === 0) return undefined
  const order = orderOf(pod, container, kubeletDir, clones, mayStartWithout)
  return groups === undefined ? order : { ...order, isMember: true }
}

/**
 * What a container that asks does without, where it was refused or nobody was asked: the same volumes, each once. Pure.
 * @returns undefined where it has none
 */
export function lackingIn(
  pod: PodSandbox,
  container: Container,
  volumes: PodVolumes,
  { kubeletDir }: Pick<Node, 'kubeletDir'>,
): ContainerOrder | undefined {
  const asked = readable(pod)
  const podDir = podDirectory(kubeletDir, checkedUid(pod))
  const clones = container.mounts.flatMap((mount): CloneOrder[] => {
    const volume = volumeOf(mount, podDir, volumes)
    if (volume === undefined || volume.isKubelets || volume.isOwn) return []
    const group = asked && groupFor(asked, volume)
    // Of an annotation that cannot be read every volume may be meant.
    if (asked === undefined ? volume.kind === HOST_PATH : group === undefined) return []
    return [orderFor(volume, group, '')]
  })
  return clones.length === 0 ? undefined : orderOf(pod, container, kubeletDir, clones.slice(0, MOST_MOUNTS), true)
}

function readable({ annotations }: PodSandbox): Asked | undefined {
  try {
    return askedOf(annotations)
  } catch {
    return undefined
  }
}

function orderOf(
  pod: PodSandbox,
  container: Container,
  kubeletDir: string,
  clones: readonly CloneOrder[],
  mayStartWithout: boolean,
): ContainerOrder {
  return {
    container: container.id,
    containerName: container.name,
    sandbox: pod.id,
    pod: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
    hasUserNamespace: hasUserNamespace(container),
    kubeletDir,
    clones,
    isOptional: mayStartWithout,
  }
}

/** It becomes part of a path. */
function checkedUid({ uid }: PodSandbox): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(uid)) return uid
  throw new Refusal(`the runtime tells the pod's uid as ${quoted(uid)}: it is no uid of kubelet's`)
}

const but = ({ shown }: Asked, fault: string) => [shown, fault].join(', but ')

function tooMany(asked: Asked | undefined, count: number, name: string): string {
  return (
    `${asked?.shown ?? OWN_ASKED}, but ${count} volumeMounts of container ${quoted(name)} would have to be mapped, and more than ${MOST_MOUNTS} ` +
    'of one container are not: mount fewer, or name those that need it in the annotation'
  )
}

/** A path names the mount that a container has there, or a hostPath. */
function groupFor({ all, named }: Asked, { mount, kind, name, isKubelets, isOwn }: MountedVolume): number | undefined {
  const group = named.get(mount.destination) ?? named.get(name)
  if (group !== undefined) return group
  // Without a name a hostPath cannot be told from what the runtime itself mounts.
  if (all === undefined || kind === HOST_PATH || isKubelets || isOwn) return undefined
  return all
}

/** What keeps a volume from being mapped, whatever the node's rules say. */
function faultOf({ mount, kind, name, isKubelets, isOwn }: MountedVolume, group: number, podDir: string) {
  const shown = `volume ${quoted(name)} (at ${quoted(mount.destination)})`
  if (isKubelets) return `kubelet writes the files of ${shown} itself, for the pod's fsGroup: leave the volume out`
  if (isOwn) {
    return (
      `${shown} is modekeep's own: set the pod's fsGroup to ${group} and the volume's option ownership instead, ` +
      'as far as "allow" of the node\'s configuration lets it'
    )
  }
  const uid = podDir.slice(podDir.lastIndexOf('/') + 1)
  if (kind === HOST_PATH && name.includes(`/pods/${uid}/volume`)) {
    return `${shown} lies in another directory of kubelet's than ${quoted(podDir)}: give kubelet's --root-dir as --kubelet-dir to "modekeep nri"`
  }
  const propagation = propagationOf(mount.options)
  if (propagation === undefined) return undefined
  return `${shown} has a mountPropagation (${propagation}), which a mapped mount cannot have: leave mountPropagation out, or the volume`
}

function orderFor({ mount, name, isOwn }: MountedVolume, group: number | undefined, asked: string): CloneOrder {
  const { destination, source, options } = mount
  return { volume: name, destination, source, options, group, asked, isOwn }
}

/** What containerd and CRI-O mount into each container, of directories of their own. */
const RUNTIMES_PATHS: readonly string[] = ['/dev/shm', '/etc/hostname', '/etc/hosts', '/etc/resolv.conf']

/** Names that no volume of the pod has: a typing error would leave a pod without its group. Paths may be another container's. */
function unknownNames(asked: Asked, mounted: readonly MountedVolume[], volumes: PodVolumes): string[] {
  const { plugins } = volumes
  const here = new Set(mounted.map(({ name }) => name))
  const unknown = [...asked.named.keys()].filter(
    (name) => !name.startsWith('/') && !plugins.has(name) && !here.has(name),
  )
  if (unknown.length === 0) return []
  const names = [...plugins].flatMap(([name, plugin]) =>
    WRITTEN_PLUGINS.includes(plugin) || isOwn(plugin, name, volumes) ? [] : [name],
  )
  const paths = mounted.flatMap(({ mount: { destination }, ...of }) =>
    of.isKubelets || of.isOwn || RUNTIMES_PATHS.includes(destination) ? [] : [destination],
  )
  return [
    `${asked.shown}, but the pod has no volume ${listed(unknown, ', ')} that kubelet knows by this name: ` +
      `write ${listed(names, ' or ')} or the path where the container has it, ${listed(paths, ' or ')} ` +
      "(a claim's volume has the PersistentVolume's name, a hostPath only a path)",
  ]
}

function listed(names: readonly (string | number)[], between: ' or ' | ', '): string {
  if (names.length === 0) return '(there is none)'
  const more = names.length - LONGEST_LIST
  const rest = more > 0 ? [between === ' or ' ? `one of ${more} more` : `${more} more`] : []
  return [...names.slice(0, LONGEST_LIST).map(quoted), ...rest].join(between)
}

/** @param has the groups of its processes, which a runtime tells since NRI 0.11 */
function notMember(asked: Asked, clones: readonly CloneOrder[], name: string, has?: readonly number[]): string[] {
  if (has === undefined) return []
  const groups = new Set(clones.flatMap(({ group }) => group ?? []))
  const missing = [...groups].filter((group) => !has.includes(group))
  if (missing.length === 0) return []
  return [
    `${asked.shown}, but the processes of container ${quoted(name)} are not in group ${listed(missing, ', ')}: ` +
      `write it in supplementalGroups of the pod's securityContext (or in fsGroup, where the volume's CSIDriver has fsGroupPolicy None)`,
  ]
}
