import { isSameMountRequest, type MountRequest } from '../config/mount-request.ts'
import { createFault, type Fault, renderFault } from '../errors/fault.ts'
import {
  type GroupPlan,
  type GroupWalkStep,
  type MapGroupStep,
  planGroup,
  type VolumeKindFacts,
} from '../fsgroup/group-plan.ts'
import { isKubeletVolume } from '../kernel/mount-table/kubelet-volume.ts'
import { parseMountFlags } from '../kernel/mount-table/mount-flags.ts'
import {
  createMountRecord,
  findDaemonStagingDirectory,
  isRecordedMount,
  type MountRecord,
} from '../state/mount-record.ts'
import type { MountPlanInput } from './observe.ts'

/** The former record; undefined if there was none: then nothing of the volume may remain. */
type MountRecordUndo = { restore: MountRecord | undefined }

/** One effect of a mount plan. `undo` names its inverse. If a later step fails, the inverses run in reverse order. */
export type MountStep =
  | { do: 'record'; record: MountRecord; undo: MountRecordUndo }
  /** @property group applied by the kind's own mount options @property withheld why a requested group is not applied */
  | { do: 'make-tree'; group: number | undefined; withheld?: string; undo: 'close-tree' }
  | { do: 'set-flags'; set: number; clear: number }
  | GroupWalkStep
  | MapGroupStep
  /** The record is written before the mount is attached: a record without a mount is harmless, the reverse is not. */
  | { do: 'record-ready'; record: MountRecord; undo: MountRecordUndo }
  /** A mount needs a mount point of its root's type. Kubelet created a directory, and expects one afterwards. */
  | { do: 'set-target'; type: 'directory' | 'file'; undo: 'directory-target' }
  /** Beneath what a daemon serves: attachGuardMount in volume/daemon.ts. */
  | { do: 'guard' }
  /** Ends the daemons of replaced mounts that would otherwise never end. */
  | { do: 'end-daemons' }
  | { do: 'attach'; undo: 'detach' }
  /** Replaces the existing mount, atomically if the kernel supports that (MOVE_MOUNT_BENEATH). */
  | { do: 'replace' }
  | { do: 'detach-all'; undo: 'old-mount' }

export interface MountPlan {
  decision: 'ready' | 'fresh' | 'replace' | 'refuse'
  /** The reason of the decision, for the log. */
  reason: string
  fault?: Fault
  steps: MountStep[]
}

/**
 * Decides what a `mount` call does. Pure.
 * @param kindOf returns the facts of a fsType: the request's, and that of an existing mount
 * @param keepsRecord keeps the record of a mount that fails, because it is retried
 */
export function planMount(
  request: MountRequest,
  view: MountPlanInput,
  kindOf: (fsType: string) => VolumeKindFacts,
  keepsRecord = false,
): MountPlan {
  const { record, mounted } = view
  const { directory, fsType } = request
  const kind = kindOf(fsType)
  const make = (decision: 'fresh' | 'replace', reason: string): MountPlan => {
    const given = planGroup(request, view.source, kind, view.isMappedByRuntime)
    if (given.refusal !== undefined) return createRefusalPlan(given.refusal)
    const isOwnMount = decision === 'replace' && isRecordedMount(record, view)
    const steps = isOwnMount ? given.steps.map(keepExistingMount) : given.steps
    return {
      decision,
      reason,
      steps: planMountSteps(request, view, { ...given, steps }, kind.hasDaemon ?? false, keepsRecord),
    }
  }
  if (mounted === undefined) {
    if (view.target === 'file' && record === undefined && !isKubeletVolume(directory)) {
      return planRefusal('mount-directory', `mount directory ${directory} is a file`, 'name a directory')
    }
    const isInterrupted = record !== undefined && record.mounted === undefined
    return make('fresh', isInterrupted ? 'an earlier call was interrupted' : 'nothing is mounted')
  }
  if (mounted !== 'broken' && isRecordedMount(record, view)) {
    const change = findMountChange(record, request, view)
    if (change === undefined) {
      return {
        decision: 'ready',
        reason: 'the mount is there and as asked for',
        // A call that crashed after the mount was attached did not reach these.
        steps: [...includeStepIf(view.needsGuard, { do: 'guard' }), ...planEndOfDaemons(record.replacedDaemons)],
      }
    }
    const { fsType } = record.request
    if (kindOf(fsType).persistent) return make('replace', change)
    return planRefusal(
      'options-changed',
      `${change}, and replacing this ${fsType} would lose its files`,
      'delete the pod to apply it',
    )
  }
  const isUnfinished = isMountBeingReplaced(record, view)
  if (!isKubeletVolume(directory) && !isUnfinished) {
    return planRefusal(
      'mount-directory',
      `something else is mounted at ${directory}, which is no volume directory of kubelet's`,
      'unmount it first',
    )
  }
  if (mounted === 'broken') return make('replace', 'what is mounted does not respond')
  if (kind.persistent || isUnfinished) return make('replace', 'something else is mounted')
  return planRefusal(
    'options-changed',
    `a mount without a record is there, and if it is this ${fsType}, replacing it would lose its files`,
    'delete the pod to mount a new one',
  )
}

/** A mount that a pod uses is not removed if its root cannot get the group. */
function keepExistingMount<S extends GroupWalkStep | MapGroupStep>(step: S): S {
  if (step.do === 'own-volume') return { ...step, isMounted: true }
  if (step.do !== 'map-group' || typeof step.otherwise === 'string') return step
  return { ...step, otherwise: keepExistingMount(step.otherwise) }
}

const planRefusal = (...fault: Parameters<typeof createFault>) => createRefusalPlan(createFault(...fault))

const createRefusalPlan = (fault: Fault): MountPlan => ({
  decision: 'refuse',
  reason: renderFault(fault),
  fault,
  steps: [],
})

const includeStepIf = (condition: boolean, step: MountStep): MountStep[] => (condition ? [step] : [])

const planEndOfDaemons = ({ length }: readonly string[]) => includeStepIf(length > 0, { do: 'end-daemons' })

/** Whether a call crashed before it attached the new mount. */
function isMountBeingReplaced(record: MountRecord | undefined, { mountId, boot }: MountPlanInput): boolean {
  return mountId !== undefined && record?.boot === boot && record.replaces?.mountId === String(mountId)
}

function findMountChange(record: MountRecord, request: MountRequest, view: MountPlanInput): string | undefined {
  if (!isSameMountRequest(record.request, request)) return 'the options changed'
  const { walked, source, mounted } = view
  const { given } = record
  // An idmapped mount cannot be mapped again (mount_setattr(2)), so the container would not start.
  if (view.isMappedByRuntime && given.by === 'idmap' && given.from !== request.fsGroup.groupId) {
    return 'the pod has a user namespace, for which the runtime cannot map what is mapped for its group'
  }
  const isInterrupted = walked && !walked.complete && !walked.hasEnded
  if (given.by === 'walk' && (isInterrupted || (walked && walked.group !== given.group))) {
    return 'an interrupted call changed the group of the volume'
  }
  if (source === undefined || mounted === undefined || mounted === 'broken') return undefined
  if (record.identity !== source.identity) return 'the source is another one now'
  const { root, isDirectory } = source
  if (root === undefined) return undefined
  if (mounted.device !== root.device || mounted.inode !== root.inode) {
    return `the source is another ${isDirectory ? 'directory' : 'file'} now`
  }
  const hasOtherGroup = given.by === 'idmap' && request.idmapFrom === undefined && given.from !== root.group
  return hasOtherGroup ? 'the volume has another group on disk now' : undefined
}

/**
 * Plans the steps up to the new mount. An existing mount keeps its record until the new one is complete: other calls must
 * see that it references its volume.
 */
function planMountSteps(
  request: MountRequest,
  view: MountPlanInput,
  given: GroupPlan,
  hasDaemon: boolean,
  keepsRecord: boolean,
): MountStep[] {
  const isFresh = view.mounted === undefined
  const replacedDaemons = listReplacedDaemons(view)
  const record = {
    ...createMountRecord(request, view.boot, view.source),
    replaces: findReplacedMount(view),
    replacedDaemons,
    daemons: view.record?.daemons?.filter(({ staging }) => replacedDaemons.includes(staging)),
  }
  // An interrupted call left a record that has no mount.
  const undo = { restore: isFresh && !keepsRecord ? undefined : view.record }
  return [
    ...includeStepIf(isFresh, { do: 'record', record, undo }),
    {
      do: 'make-tree',
      group: given.byOption,
      ...(given.withheld !== undefined && { withheld: given.withheld }),
      undo: 'close-tree',
    },
    { do: 'set-flags', ...parseMountFlags(request.mountOptions, request.readOnly) },
    ...given.steps,
    { do: 'record-ready', record, undo },
    ...planAttachSteps(view, hasDaemon),
    ...planEndOfDaemons(replacedDaemons),
  ]
}

function findReplacedMount({ record, mountId, boot }: MountPlanInput): MountRecord['replaces'] {
  if (mountId === undefined) return undefined
  const staging = record?.boot === boot ? findDaemonStagingDirectory(record, mountId) : undefined
  return { mountId: String(mountId), staging }
}

/** Lists the staging directories of the daemons that serve the current mount or earlier ones. */
function listReplacedDaemons({ record, boot }: MountPlanInput): string[] {
  if (record === undefined || record.boot !== boot) return []
  return [...record.replacedDaemons, ...(record.staging === undefined ? [] : [record.staging])]
}

/** A mount cannot be attached beneath one of another type, so that replacement leaves a moment without a mount. */
function planAttachSteps({ mounted, target, source }: MountPlanInput, hasDaemon: boolean): MountStep[] {
  const type = source === undefined || source.isDirectory ? 'directory' : 'file'
  const there = mounted === undefined ? target : mounted === 'broken' || mounted.isDirectory ? 'directory' : 'file'
  const guard = includeStepIf(hasDaemon, { do: 'guard' })
  if (mounted !== undefined && there === type) return [...guard, { do: 'replace' }]
  return [
    ...includeStepIf(mounted !== undefined, { do: 'detach-all', undo: 'old-mount' }),
    ...includeStepIf(there !== type, { do: 'set-target', type, undo: 'directory-target' }),
    { do: 'attach', undo: 'detach' },
    // The guard follows the mount, because kubelet would take a guard alone for the volume.
    ...guard,
  ]
}
