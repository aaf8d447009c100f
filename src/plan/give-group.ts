import type { MountRequest } from '../protocol/request.ts'
import type { MapStep, Step, WalkStep } from './step.ts'
import type { View } from './view.ts'

/** How the pod's group is given: the steps, or the reason why it cannot be. Pure. */
export function giveGroup(request: MountRequest, view: View): { steps: Step[]; refusal?: string } {
  const { ownership, fsGroup } = request
  if (fsGroup === undefined || ownership === 'none') return { steps: [] }
  const walk = walkSteps(request, view, fsGroup)
  if (ownership === 'walk') return walk
  // The group of root is everybody's who runs as root: it has what it needs.
  if (fsGroup === 0) return { steps: [] }
  const volume = view.source?.volume ?? ''
  const otherwise = ownership === 'auto' ? instead(request, walk) : 'refuse'
  return { steps: [{ do: 'map-group', from: request.idmapFrom, to: fsGroup, volume, otherwise }] }
}

function instead({ readOnly }: MountRequest, { steps: [step] }: { steps: WalkStep[] }): MapStep['otherwise'] {
  return step ?? (readOnly ? 'nothing' : 'refuse')
}

function walkSteps(request: MountRequest, { source }: View, group: number): { steps: WalkStep[]; refusal?: string } {
  // Read-only volumes are changed by nobody.
  if (request.readOnly) return { steps: [] }
  const { groupAccess: access, changePolicy: policy } = request
  if (source === undefined) return { steps: [{ do: 'own-root', group, access }] }
  if (source.isDirectory) return { steps: [{ do: 'own-volume', group, access, volume: source.volume, policy }] }
  return {
    steps: [],
    refusal: `option "ownership" is "walk", but what "subPath" names is no directory, and only those are walked: use ownership "idmap", or mount the directory it is in`,
  }
}
