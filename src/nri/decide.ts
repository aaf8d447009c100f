import { type CloneOrder, type ContainerOrder, propagationOf } from '../container-mount/order.ts'
import { pathSizeFaults } from '../path/input-sizes.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { HOST_PATH, type MapRule, mayMap } from '../request/map-rule.ts'
import { type Asked, askedOf, hasSetGid, isAsking, isOptional, OWN_ASKED } from './asked.ts'
import type { Container, PodSandbox } from './messages.ts'
import { groupFor, isOfNode, listed, unknownNames, unmatchedPaths } from './named.ts'
import type { ToldGroups } from './pod-groups.ts'
import { type MountedVolume, type PodVolumes, podDirectory, ROOT_DIRECTORY, volumeOf } from './volume.ts'

/** What a decision depends on beside what the runtime tells. */
export interface Node {
  /** Kubelet's root directory, as it writes it in the sources of mounts. */
  readonly kubeletDir: string
  readonly map: readonly MapRule[]
}

/** Of one container: more could not be mapped in its time, and no pod needs them. */
const MOST_MOUNTS = 200

/** Whether a container may need a clone: all others are answered at once. */
export function isConcerned(pod: PodSandbox, container: Container): boolean {
  return isAsking(pod.annotations) || (hasUserNamespace(container) && container.mounts.some(isPerhapsOwn))
}

/** Whether kubelet may have mounted a volume of modekeep's there, by the path alone. */
export const isPerhapsOwn = ({ source }: { source: string }) =>
  /\/volumes\/(modekeep~fs|kubernetes\.io~csi)\/|\/volume-subpaths\//.test(source)

export function hasUserNamespace({ linux }: Container): boolean {
  return linux?.namespaces.some(({ type }) => type === 'user') ?? false
}

/** What becomes of a container. */
export interface Decision {
  /** Undefined: no mount of it is to be a clone. */
  readonly order?: ContainerOrder | undefined
  /** What is not refused, and may be a typing error: paths of the annotation at which this container has no volume. */
  readonly warning?: string | undefined
}

/**
 * Which mounts of a container are to be clones. Pure.
 * @param podGroups those of the pod's processes, where the runtime does not tell the container's with it but was asked
 * @throws {Refusal} for an annotation that cannot be read, that names what cannot be had, or that asks for more than the
 *   node's rules allow
 */
export function decide(
  pod: PodSandbox,
  container: Container,
  volumes: PodVolumes,
  { kubeletDir, map }: Node,
  podGroups?: ToldGroups,
): Decision {
  const asked = askedOf(pod.annotations)
  const { user, name: containerName } = container
  const groups = user === undefined ? podGroups : { certain: [user.gid, ...user.additionalGids], perhaps: [] }
  const podDir = podDirectory(kubeletDir, pod.uid)
  const mounted = container.mounts.flatMap((mount) => volumeOf(mount, podDir, volumes) ?? [])
  const wanted = mounted.flatMap((volume) => wishFor(volume, asked, hasUserNamespace(container)))
  if (asked === undefined && wanted.length === 0) return {}
  if (wanted.length > MOST_MOUNTS) throw new Refusal(tooMany(asked, wanted.length, containerName))
  const mayStartWithout = isOptional(pod.annotations)
  const hasSetGidRequest = hasSetGid(pod.annotations)
  const faults: string[] = []
  const clones = wanted.flatMap(({ volume, given, shown }): CloneOrder[] => {
    const setGid =
      volume.kind === 'emptyDir' ? ('emptyDir' as const) : hasSetGidRequest ? ('requested' as const) : undefined
    const order = { ...orderFor(volume, given), asked: shown, ...(given !== undefined && setGid && { setGid }) }
    const { namespace } = pod
    const fault = faultOf(volume, given, kubeletDir)
    const allowed =
      given === undefined || fault !== undefined
        ? { refusal: fault }
        : mayMap(map, { namespace, kind: volume.kind, volume: volume.name, group: given })
    if ('fsTypes' in allowed) return [{ ...order, ...allowed }]
    if (allowed.refusal === undefined) return [order]
    faults.push([shown, allowed.refusal].join(', but '))
    return []
  })
  if (asked !== undefined) {
    faults.push(...unknownNames(asked, mounted, volumes), ...notMember(asked, clones, containerName, groups))
  }
  if (faults.length > 0) throw new Refusal(faults)
  const warning = asked && unmatchedPaths(asked, mounted, containerName)
  if (clones.length === 0) return { warning }
  const order = orderOf(pod, container, kubeletDir, clones, mayStartWithout)
  const isMember = clones.every(({ group }) => group === undefined || groups?.certain.includes(group))
  return { order: groups !== undefined && isMember ? { ...order, isMember } : order, warning }
}

/** A volume that is to be mapped, or that keeps its container from being created. */
interface Wish {
  volume: MountedVolume
  /** Undefined: modekeep's own, in a user namespace. */
  given: number | undefined
  /** What asks for it, as a refusal names it. */
  shown: string
}

/** None or one. */
function wishFor(volume: MountedVolume, asked: Asked | undefined, inUserNamespace: boolean): Wish[] {
  const given = asked && groupFor(asked, volume)
  // Of what lies in a directory that is not known, everything may be meant.
  if (asked !== undefined && (given !== undefined || volume.isElsewhere)) return [{ volume, given, shown: asked.shown }]
  return volume.isOwn && inUserNamespace ? [{ volume, given, shown: OWN_ASKED }] : []
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
  if (!isAsking(pod.annotations)) return undefined
  const asked = readable(pod)
  const podDir = podDirectory(kubeletDir, pod.uid)
  const clones = container.mounts.flatMap((mount): CloneOrder[] => {
    const volume = volumeOf(mount, podDir, volumes)
    if (volume === undefined || volume.isKubelets || volume.isOwn) return []
    const group = asked && groupFor(asked, volume)
    // Of an annotation that cannot be read every volume may be meant.
    if (asked === undefined ? isOfNode(volume) : group === undefined) return []
    return [orderFor(volume, group)]
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

function tooMany(asked: Asked | undefined, count: number, name: string): string {
  return (
    `${asked?.shown ?? OWN_ASKED}, but ${count} volumeMounts of container ${quoted(name)} would have to be mapped, and more than ${MOST_MOUNTS} ` +
    'of one container are not: mount fewer, or name those that need it in the annotation'
  )
}

/**
 * What keeps a volume from being mapped, whatever the node's rules say.
 * @param group undefined: nothing asks for one
 */
function faultOf(volume: MountedVolume, group: number | undefined, kubeletDir: string): string | undefined {
  const { mount, kind, name, isKubelets, isOwn, isElsewhere } = volume
  const [tooLong] = pathSizeFaults(`the source of the volume at ${quoted(mount.destination)}`, mount.source)
  if (tooLong !== undefined) return tooLong
  const shown = `volume ${quoted(name)} (at ${quoted(mount.destination)})`
  if (isElsewhere) {
    return (
      `${shown} lies at ${quoted(mount.source)}, in another directory of kubelet's than ${quoted(kubeletDir)}: ` +
      'give kubelet\'s --root-dir as --kubelet-dir to "modekeep nri"'
    )
  }
  if (group === undefined) return undefined
  if (kind === HOST_PATH && mount.source === ROOT_DIRECTORY) {
    return `${shown} shows the node's root directory, which is never mapped: mount the directory that the pod needs as a hostPath`
  }
  if (isKubelets) return `kubelet writes the files of ${shown} itself, for the pod's fsGroup: leave the volume out`
  if (isOwn) {
    return (
      `${shown} is modekeep's own: set the pod's fsGroup to ${group} and the volume's option ownership instead, ` +
      'as far as "allow" of the node\'s configuration lets it'
    )
  }
  if (isOwn === undefined) {
    const why =
      kind === 'csi'
        ? "kubelet's note of its driver (vol_data.json) cannot be read"
        : 'it is a part (subPath) of a hostPath volume, or of one whose name another volume of the pod has too'
    return `${shown} cannot be told whose volume it is, as ${why}: name the volumes that need the group, without this one`
  }
  const propagation = propagationOf(mount.options)
  if (propagation === undefined) return undefined
  return `${shown} has a mountPropagation (${propagation}), which a mapped mount cannot have: leave mountPropagation out, or the volume`
}

function orderFor({ mount, name, isOwn = false }: MountedVolume, group: number | undefined): CloneOrder {
  const { destination, source, options } = mount
  return { volume: name, destination, source, options, group, asked: '', isOwn }
}

/** @param has the groups of its processes; undefined: nobody tells */
function notMember(asked: Asked, clones: readonly CloneOrder[], name: string, has?: ToldGroups): string[] {
  if (has === undefined) return []
  const groups = new Set(clones.flatMap(({ group }) => group ?? []))
  const missing = [...groups].filter((group) => !has.certain.includes(group) && !has.perhaps.includes(group))
  if (missing.length === 0) return []
  return [
    `${asked.shown}, but the processes of container ${quoted(name)} are not in group ${listed(missing, ', ')}: ` +
      `write it in supplementalGroups of the pod's securityContext (or in fsGroup, where the volume's CSIDriver has fsGroupPolicy None)`,
  ]
}
