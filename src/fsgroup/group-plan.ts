import type { FsGroupRequest, MountRequest } from '../config/mount-request.ts'
import { createOptionFault, type Fault } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import type { SourceView } from '../volume/detached-tree.ts'
import type { VolumeKind } from '../volume/kind/kind.ts'

/** Shows the group on disk (undefined: the root's) as another. `otherwise` replaces a map that is not possible. */
export interface MapGroupStep {
  do: 'map-group'
  from: number | undefined
  to: number
  /** Empty if the volume ends with its mount; undefined if only the mount shows it. */
  volume: string | undefined
  otherwise: GroupWalkStep | 'nothing' | 'refuse'
}

/** Applies a group by changing inodes: only the root if the volume ends with its mount. */
export type GroupWalkStep =
  | { do: 'own-root'; fsGroup: FsGroupRequest }
  /** @property isMounted a mount of the pod exists already, and stays where the group cannot be applied to the root */
  | { do: 'own-volume'; fsGroup: FsGroupRequest; volume: string | undefined; isMounted?: boolean }

export type VolumeKindFacts = Pick<VolumeKind, 'persistent' | 'walk' | 'groupOptions' | 'hasDaemon'>

export interface GroupPlan {
  steps: (GroupWalkStep | MapGroupStep)[]
  /** Group that mount options of the kind apply. */
  byOption?: number
  /** Reason why the requested group is not applied. */
  withheld?: string
  refusal?: Fault
}

/**
 * Plans how the pod's group is applied: returns the steps, or the reason why it cannot be. Does not access the node.
 * @param isMappedByRuntime the runtime maps the volume for the pod's user namespace, and cannot map a mapped mount
 */
export function planGroup(
  request: MountRequest,
  source: SourceView | undefined,
  kind: VolumeKindFacts,
  isMappedByRuntime = false,
): GroupPlan {
  const { ownership, fsGroup } = request
  if (ownership === 'none') return { steps: [] }
  if (fsGroup.groupId === undefined)
    return ownership === 'auto' ? { steps: [] } : { steps: [], withheld: formatMissingGroup(ownership) }
  if (ownership === 'auto' && kind.groupOptions) return { steps: [], byOption: fsGroup.groupId }
  const walk = planGroupWalk(request, source, fsGroup, kind)
  // Permission bits are on disk, and a map adds none.
  const needsBits = ownership === 'auto' && fsGroup.access === 'grant' && walk.steps.length > 0
  if (ownership === 'walk' || needsBits) return walk
  // Processes that run as root have group 0, with all the access that it gives.
  if (fsGroup.groupId === 0) return { steps: [] }
  if (isMappedByRuntime) return ownership === 'auto' ? walk : { steps: [], refusal: MAPPED_TWICE_FAULT }
  const instead = walk.steps[0] ?? (request.readOnly ? 'nothing' : 'refuse')
  const otherwise = ownership === 'auto' ? instead : 'refuse'
  return {
    steps: [{ do: 'map-group', from: request.idmapFrom, to: fsGroup.groupId, volume: source?.volume, otherwise }],
  }
}

const formatMissingGroup = (ownership: string) =>
  `option "ownership" is "${ownership}", but the pod has no fsGroup, so no group is applied: set securityContext.fsGroup of the pod`

const MAPPED_TWICE_FAULT = createOptionFault(
  'user-namespace',
  'ownership',
  'is "idmap", but the pod has a user namespace (hostUsers: false), and no container of it can start with a mapped mount',
  'use "walk", or "auto", which walks for such pods, or have "modekeep nri" run on the node, which maps for them',
)

const createOwnershipFault = (reason: string, remedy: string) =>
  createOptionFault('option-contradiction', 'ownership', reason, remedy)

type GroupWalkPlan = Pick<GroupPlan, 'withheld' | 'refusal'> & { steps: GroupWalkStep[] }

const READ_ONLY_VOLUME_REASON =
  'the volume is read-only, so no inode of it is changed, and its files have the groups that they had: ownership "idmap" shows them with the group of the pod'

function planGroupWalk(
  { readOnly, fsType }: MountRequest,
  source: SourceView | undefined,
  fsGroup: FsGroupRequest,
  kind: VolumeKindFacts,
): GroupWalkPlan {
  // No process changes a read-only volume.
  if (readOnly) return { steps: [], withheld: READ_ONLY_VOLUME_REASON }
  if (kind.walk !== true) {
    const alternative = kind.groupOptions ? '"auto", which gives the group by mount options' : '"none", or "idmap"'
    return {
      steps: [],
      refusal: createOwnershipFault(`is "walk", but on ${quoteValue(fsType)} ${kind.walk}`, `use ${alternative}`),
    }
  }
  if (source === undefined) return { steps: [{ do: 'own-root', fsGroup }] }
  if (source.isDirectory) return { steps: [{ do: 'own-volume', fsGroup, volume: source.volume }] }
  return {
    steps: [],
    refusal: createOwnershipFault(
      `is "walk", but what "subPath" names is not a directory, so it cannot be walked`,
      `use ownership "idmap", or mount the directory it is in`,
    ),
  }
}
