import type { CloneRequest, ContainerCloneRequest } from '../../container/clone-request.ts'
import {
  findRequestedGroup,
  hasGroupAnnotation,
  isHostPathOrRuntimeMount,
  MAX_MAPPED_MOUNTS,
  type ParsedGroupAnnotation,
  parseGroupAnnotation,
} from './annotations.ts'
import { createCloneRequest, createContainerCloneRequest, type NodeMapRules } from './decide-clones.ts'
import { findMountedVolume, type PodVolumes, resolvePodDirectory } from './pod-volumes.ts'
import type { Container, PodSandbox } from './protocol.ts'

/**
 * Finds the volumes that an annotated container has without its group, because it was refused or no plugin was queried. Pure.
 * @returns undefined if it has none
 */
export function findMissingClones(
  pod: PodSandbox,
  container: Container,
  volumes: PodVolumes,
  { kubeletDir }: Pick<NodeMapRules, 'kubeletDir'>,
): ContainerCloneRequest | undefined {
  if (!hasGroupAnnotation(pod.annotations)) return undefined
  const annotation = tryParseGroupAnnotation(pod)
  const podDir = resolvePodDirectory(kubeletDir, pod.uid)
  const clones = container.mounts.flatMap((mount): CloneRequest[] => {
    const volume = findMountedVolume(mount, podDir, volumes)
    if (volume === undefined || volume.isKubelets || volume.isOwn) return []
    const group = annotation && findRequestedGroup(annotation, volume)
    // An invalid annotation could name every volume.
    if (annotation === undefined ? isHostPathOrRuntimeMount(volume) : group === undefined) return []
    return [createCloneRequest(volume, group)]
  })
  return clones.length === 0
    ? undefined
    : createContainerCloneRequest(pod, container, kubeletDir, clones.slice(0, MAX_MAPPED_MOUNTS), true)
}

function tryParseGroupAnnotation({ annotations }: PodSandbox): ParsedGroupAnnotation | undefined {
  try {
    return parseGroupAnnotation(annotations)
  } catch {
    return undefined
  }
}
