import { findVolumeMapGrant, HOST_PATH_KIND, type MapRule } from '../../config/map-rule.ts'
import { type CloneRequest, type ContainerCloneRequest, findPropagationOption } from '../../container/clone-request.ts'
import { attributeFaultToAnnotation, createFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { checkPathSize } from '../../kernel/path/input-sizes.ts'
import {
  createTooManyMountsFault,
  findGroupMembershipFaults,
  findRequestedGroup,
  findUnknownVolumeFaults,
  formatUnmatchedPathsWarning,
  hasGrantAnnotation,
  hasGroupAnnotation,
  hasSetGidAnnotation,
  isGroupOptional,
  MAX_MAPPED_MOUNTS,
  type ParsedGroupAnnotation,
  parseGroupAnnotation,
  USER_NAMESPACE_REASON,
} from './annotations.ts'
import type { PodProcessGids } from './cri.ts'
import {
  findMountedVolume,
  type MountedVolume,
  mayBeModekeepVolume,
  NODE_ROOT_DIRECTORY,
  type PodVolumes,
  resolvePodDirectory,
} from './pod-volumes.ts'
import type { Container, PodSandbox } from './protocol.ts'

/** Input of a decision that the node, not the runtime, provides. */
export interface NodeMapRules {
  /** Kubelet's root directory, as kubelet writes it in the sources of mounts. */
  readonly kubeletDir: string
  readonly map: readonly MapRule[]
}

/** Returns whether a container may need a clone. The plugin answers all other containers at once. */
export function mayContainerNeedClone(pod: PodSandbox, container: Container): boolean {
  return (
    hasGroupAnnotation(pod.annotations) ||
    (isContainerInUserNamespace(container) && container.mounts.some(mayBeModekeepVolume))
  )
}

export function isContainerInUserNamespace({ linux }: Container): boolean {
  return linux?.namespaces.some(({ type }) => type === 'user') ?? false
}

export interface CloneDecision {
  /** Undefined if the container needs no clone. */
  readonly request?: ContainerCloneRequest | undefined
  /** Paths of the annotation at which this container has no volume: perhaps a typing error. */
  readonly warning?: string | undefined
}

/**
 * Decides which mounts of a container are replaced by clones. Pure.
 * @param podGroups groups of the pod's processes, for runtimes before NRI 0.11, which do not send the container's own
 * @throws {Refusal} for an annotation that is invalid, names a volume that cannot be mapped, or exceeds the node's rules
 */
export function decideContainerClones(
  pod: PodSandbox,
  container: Container,
  volumes: PodVolumes,
  { kubeletDir, map }: NodeMapRules,
  podGroups?: PodProcessGids,
): CloneDecision {
  const annotation = parseGroupAnnotation(pod.annotations)
  const { user, name: containerName } = container
  const groups = user === undefined ? podGroups : { certain: [user.gid, ...user.additionalGids], possible: [] }
  const podDir = resolvePodDirectory(kubeletDir, pod.uid)
  const mounted = container.mounts.flatMap((mount) => findMountedVolume(mount, podDir, volumes) ?? [])
  const wanted = mounted.flatMap((volume) =>
    findCloneCandidate(volume, annotation, isContainerInUserNamespace(container)),
  )
  if (annotation === undefined && wanted.length === 0) return {}
  if (wanted.length > MAX_MAPPED_MOUNTS)
    throw new Refusal(createTooManyMountsFault(annotation, wanted.length, containerName))
  const isOptional = isGroupOptional(pod.annotations)
  const hasSetGidRequest = hasSetGidAnnotation(pod.annotations)
  const groupAccess = hasGrantAnnotation(pod.annotations) ? ('grant' as const) : undefined
  const faults: Fault[] = []
  const clones = wanted.flatMap(({ volume, groupId, reason }): CloneRequest[] => {
    const isEmptyDir = volume.kind === 'emptyDir'
    const setGid = isEmptyDir ? ('emptyDir' as const) : hasSetGidRequest ? ('requested' as const) : undefined
    const freshGroup = isEmptyDir ? ('unrecorded' as const) : ('recorded' as const)
    const clone = {
      ...createCloneRequest(volume, groupId),
      requestedBy: reason,
      ...(groupId !== undefined && setGid && { setGid }),
      ...(groupId !== undefined && volume.kind !== HOST_PATH_KIND && { freshGroup }),
      ...(groupId !== undefined && !isEmptyDir && groupAccess && { groupAccess }),
    }
    const { namespace } = pod
    const fault = findMappingFault(volume, groupId, kubeletDir)
    const allowed =
      groupId === undefined || fault !== undefined
        ? { refusal: fault }
        : findVolumeMapGrant(map, { namespace, kind: volume.kind, volume: volume.name, group: groupId })
    if ('fsTypes' in allowed) return [{ ...clone, ...allowed }]
    if (allowed.refusal === undefined) return [clone]
    if (isOptional) return [{ ...clone, refusal: allowed.refusal }]
    faults.push(attributeFaultToAnnotation(allowed.refusal, reason))
    return []
  })
  if (annotation !== undefined) {
    faults.push(...findUnknownVolumeFaults(annotation, mounted, volumes))
    faults.push(...findGroupMembershipFaults(annotation, clones, containerName, groups))
  }
  if (faults.length > 0) throw new Refusal(faults)
  const warning = annotation && formatUnmatchedPathsWarning(annotation, mounted, containerName)
  if (clones.length === 0) return { warning }
  const request = createContainerCloneRequest(pod, container, kubeletDir, clones, isOptional)
  const isMember = clones.every(({ group }) => group === undefined || groups?.certain.includes(group))
  return { request: groups !== undefined && isMember ? { ...request, isMember } : request, warning }
}

/** A volume that is either mapped, or refuses its container. */
interface CloneCandidate {
  volume: MountedVolume
  /** Undefined for modekeep's own volume, of a pod with a user namespace. */
  groupId: number | undefined
  /** The annotation or the user namespace, in a refusal's words. */
  reason: string
}

function findCloneCandidate(
  volume: MountedVolume,
  annotation: ParsedGroupAnnotation | undefined,
  inUserNamespace: boolean,
): CloneCandidate[] {
  const groupId = annotation && findRequestedGroup(annotation, volume)
  // A volume outside the known kubelet directory could be any of the pod's volumes, so the annotation is assumed to name it.
  if (annotation !== undefined && (groupId !== undefined || volume.isElsewhere)) {
    return [{ volume, groupId, reason: annotation.messagePrefix }]
  }
  return volume.isOwn && inUserNamespace ? [{ volume, groupId, reason: USER_NAMESPACE_REASON }] : []
}

export function createContainerCloneRequest(
  pod: PodSandbox,
  container: Container,
  kubeletDir: string,
  clones: readonly CloneRequest[],
  mayStartWithout: boolean,
): ContainerCloneRequest {
  const { user } = container
  return {
    container: container.id,
    containerName: container.name,
    sandbox: pod.id,
    pod: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
    hasUserNamespace: isContainerInUserNamespace(container),
    kubeletDir,
    clones,
    isOptional: mayStartWithout,
    ...(user !== undefined && { processUid: user.uid, processGids: [user.gid, ...user.additionalGids] }),
  }
}

/** Finds why a volume cannot be mapped, apart from the node's rules. @param group undefined if none is requested */
function findMappingFault(volume: MountedVolume, group: number | undefined, kubeletDir: string): Fault | undefined {
  const { mount, kind, name, isKubelets, isOwn, isElsewhere } = volume
  const [tooLong] = checkPathSize(`the source of the volume at ${quoteValue(mount.destination)}`, mount.source)
  if (tooLong !== undefined) return tooLong
  const shown = `volume ${quoteValue(name)} (at ${quoteValue(mount.destination)})`
  if (isElsewhere) {
    return createFault(
      'map-kubelet-dir',
      `${shown} lies at ${quoteValue(mount.source)}, in another directory of kubelet's than ${quoteValue(kubeletDir)}`,
      'give kubelet\'s --root-dir as --kubelet-dir to "modekeep nri"',
    )
  }
  if (group === undefined) return undefined
  if (kind === HOST_PATH_KIND && mount.source === NODE_ROOT_DIRECTORY) {
    return createFault(
      'map-source',
      `${shown} shows the node's root directory, which is never mapped`,
      'mount the directory that the pod needs as a hostPath',
    )
  }
  if (isKubelets)
    return createFault(
      'map-other-driver',
      `kubelet writes the files of ${shown} itself, for the pod's fsGroup`,
      'leave the volume out',
    )
  if (isOwn) {
    return createFault(
      'map-other-driver',
      `${shown} is modekeep's own`,
      `set the pod's fsGroup to ${group} and the volume's option ownership instead, ` +
        'as far as "allow" of the node\'s configuration lets it',
    )
  }
  if (isOwn === undefined) {
    const why =
      kind === 'csi'
        ? "kubelet's note of its driver (vol_data.json) cannot be read"
        : 'it is a part (subPath) of a hostPath volume, or of one whose name another volume of the pod has too'
    return createFault(
      'map-owner-unknown',
      `${shown} cannot be told whose volume it is, as ${why}`,
      'name the volumes that need the group, without this one',
    )
  }
  const propagation = findPropagationOption(mount.options)
  if (propagation === undefined) return undefined
  return createFault(
    'map-propagation',
    `${shown} has a mountPropagation (${propagation}), which a mapped mount cannot have`,
    'leave mountPropagation out, or the volume',
  )
}

export function createCloneRequest(
  { mount, name, isOwn = false }: MountedVolume,
  group: number | undefined,
): CloneRequest {
  const { destination, source, options } = mount
  return { volume: name, destination, source, options, group, requestedBy: '', isOwn }
}
