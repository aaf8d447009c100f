import type { CloneRequest } from '../container-mount/clone-request.ts'
import { createAnnotationFault, type Fault } from '../errors/fault.ts'
import { quoted } from '../errors/refusal.ts'
import { type AnnotationRequest, formatList, USER_NAMESPACE_REASON } from './annotations.ts'
import type { ProcessGroups } from './cri.ts'

/** Limit for one container. More clones could not be made before its deadline, and no pod needs them. */
export const MAX_MOUNTS = 200

export function createTooManyFault(annotation: AnnotationRequest | undefined, count: number, name: string): Fault {
  return createAnnotationFault(
    'map-too-many',
    `${annotation?.messagePrefix ?? USER_NAMESPACE_REASON}, but ${count} volumeMounts of container ${quoted(name)} would have to be mapped, and more than ${MAX_MOUNTS} of one container are not`,
    'mount fewer, or name those that need it in the annotation',
  )
}

/** @param processGroups undefined if no runtime reported them */
export function findMembershipFaults(
  annotation: AnnotationRequest,
  clones: readonly CloneRequest[],
  name: string,
  processGroups?: ProcessGroups,
): Fault[] {
  if (processGroups === undefined) return []
  const { certain, possible } = processGroups
  const groups = new Set(clones.flatMap(({ group }) => group ?? []))
  const missing = [...groups].filter((group) => !certain.includes(group) && !possible.includes(group))
  if (missing.length === 0) return []
  return [
    createAnnotationFault(
      'map-membership',
      `${annotation.messagePrefix}, but the processes of container ${quoted(name)} are not in group ${formatList(missing, ', ')}`,
      `write it in supplementalGroups of the pod's securityContext (or in fsGroup, where the volume's CSIDriver has fsGroupPolicy None)`,
    ),
  ]
}
