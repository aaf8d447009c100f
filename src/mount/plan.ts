import { type Giving, giveGroup, type KindFacts, type MapStep, type WalkStep } from '../fs-group/decide.ts'
import { mountFlags } from '../mount-table/flags.ts'
import { isKubeletVolume } from '../mount-table/kubelet-volume.ts'
import { isSameMount, type MountRequest } from '../request/mount-request.ts'
import { isOurs, type MountRecord, newMountRecord, stagingOf } from '../store/mount-record.ts'
import type { MountView } from './observe.ts'

/** The record that was there before; undefined: none was, and nothing is to be left of the volume. */
type RecordUndo = { restore: MountRecord | undefined }

/** One effect of a mount plan. `undo` names its inverse, which runs, latest first, when a later step fails. */
export type Step =
  | { do: 'record'; record: MountRecord; undo: RecordUndo }
  /** @property group given by the kind's own mount options @property withheld why none is given that was asked for */
  | { do: 'make-tree'; group: number | undefined; withheld?: string; undo: 'close-tree' }
  | { do: 'set-flags'; set: number; clear: number }
  | WalkStep
  | MapStep
  /** The record says ready before anything is attached: without its mount it is harmless, the reverse is not. */
  | { do: 'record-ready'; record: MountRecord; undo: RecordUndo }
  /** A mount lies on a thing of its root's type. Kubelet made a directory, and wants one back. */
  | { do: 'set-target'; type: 'directory' | 'file'; undo: 'directory-target' }
  /** Beneath what a daemon serves: putGuard in volume/daemon.ts. */
  | { do: 'guard' }
  /** Of daemons whose mounts were replaced, those that would stay for ever. */
  | { do: 'end-daemons' }
  | { do: 'attach'; undo: 'detach' }
  /** Puts the new mount in the place of what is there, without a moment of nothing where the kernel can. */
  | { do: 'replace' }
  | { do: 'detach-all'; undo: 'old-mount' }

export interface MountPlan {
  decision: 'ready' | 'fresh' | 'replace' | 'refuse'
  /** Why, in words, for the log and for a refusal. */
  reason: string
  steps: Step[]
}

/**
 * Decides what a `mount` call does. Pure.
 * @param kindOf what is planned with of a fsType: the request's, and that of a mount that is there
 * @param keepsRecord a mount that fails is tried again, so that its record stays
 */
export function planMount(
  request: MountRequest,
  view: MountView,
  kindOf: (fsType: string) => KindFacts,
  keepsRecord = false,
): MountPlan {
  const { record, mounted } = view
  const { directory, fsType } = request
  const kind = kindOf(fsType)
  const make = (decision: 'fresh' | 'replace', reason: string): MountPlan => {
    const given = giveGroup(request, view.source, kind, view.isMappedByRuntime)
    if (given.refusal !== undefined) return planRefusal(given.refusal)
    const isOwnMount = decision === 'replace' && isOurs(record, view)
    const steps = isOwnMount ? given.steps.map(keepMounted) : given.steps
    return {
      decision,
      reason,
      steps: planSteps(request, view, { ...given, steps }, kind.hasDaemon ?? false, keepsRecord),
    }
  }
  if (mounted === undefined) {
    if (view.target === 'file' && record === undefined && !isKubeletVolume(directory)) {
      return planRefusal(`mount directory ${directory} is a file: name a directory`)
    }
    const isInterrupted = record !== undefined && record.mounted === undefined
    return make('fresh', isInterrupted ? 'an earlier call was interrupted' : 'nothing is mounted')
  }
  if (mounted !== 'broken' && isOurs(record, view)) {
    const change = findChange(record, request, view)
    if (change === undefined) {
      return {
        decision: 'ready',
        reason: 'the mount is there and as asked for',
        steps: planUnfinishedSteps(record, view),
      }
    }
    const { fsType } = record.request
    if (kindOf(fsType).persistent) return make('replace', change)
    return planRefusal(`${change}, and replacing this ${fsType} would lose its files: delete the pod to apply it`)
  }
  const isUnfinished = isBeingReplaced(record, view)
  if (!isKubeletVolume(directory) && !isUnfinished) {
    return planRefusal(
      `something else is mounted at ${directory}, which is no volume directory of kubelet's: unmount it first`,
    )
  }
  if (mounted === 'broken') return make('replace', 'what is mounted does not respond')
  if (kind.persistent || isUnfinished) return make('replace', 'something else is mounted')
  return planRefusal(
    `a mount without a record is there, and if it is this ${fsType}, replacing it would lose its files: delete the pod to mount a new one`,
  )
}

/** A mount that a pod uses is not taken from it because its root cannot get the group. */
function keepMounted<S extends WalkStep | MapStep>(step: S): S {
  if (step.do === 'own-volume') return { ...step, isMounted: true }
  if (step.do !== 'map-group' || typeof step.otherwise === 'string') return step
  return { ...step, otherwise: keepMounted(step.otherwise) }
}

function planRefusal(reason: string): MountPlan {
  return { decision: 'refuse', reason, steps: [] }
}

function includeIf(condition: boolean, step: Step): Step[] {
  return condition ? [step] : []
}

/** What a call that crashed once the mount was there has left to do. */
function planUnfinishedSteps({ replacedDaemons }: MountRecord, { needsGuard }: MountView): Step[] {
  return [...includeIf(needsGuard, { do: 'guard' }), ...includeIf(replacedDaemons.length > 0, { do: 'end-daemons' })]
}

/** A call crashed before the new mount was in its place. */
function isBeingReplaced(record: MountRecord | undefined, { mountId, boot }: MountView): boolean {
  return mountId !== undefined && record?.boot === boot && record.replaces?.mountId === String(mountId)
}

function findChange(record: MountRecord, request: MountRequest, view: MountView): string | undefined {
  if (!isSameMount(record.request, request)) return 'the options changed'
  const { walked, source, mounted } = view
  const { given } = record
  // mount_setattr(2): what is mapped cannot be mapped again, and the container would not start.
  if (view.isMappedByRuntime && given.by === 'idmap' && given.from !== request.fsGroup) {
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
 * The steps up to the new mount. A mount that is there keeps its record until the new one is whole: others must see it
 * as a holder of its volume.
 */
function planSteps(
  request: MountRequest,
  view: MountView,
  given: Giving,
  hasDaemon: boolean,
  keepsRecord: boolean,
): Step[] {
  const isFresh = view.mounted === undefined
  const replacedDaemons = listReplacedDaemons(view)
  const record = {
    ...newMountRecord(request, view.boot, view.source),
    replaces: findReplacedMount(view),
    replacedDaemons,
    daemons: view.record?.daemons?.filter(({ staging }) => replacedDaemons.includes(staging)),
  }
  // Without a mount a record is what an interrupted call left.
  const undo = { restore: isFresh && !keepsRecord ? undefined : view.record }
  return [
    ...includeIf(isFresh, { do: 'record', record, undo }),
    {
      do: 'make-tree',
      group: given.byOption,
      ...(given.withheld !== undefined && { withheld: given.withheld }),
      undo: 'close-tree',
    },
    { do: 'set-flags', ...mountFlags(request.mountOptions, request.readOnly) },
    ...given.steps,
    { do: 'record-ready', record, undo },
    ...planAttachSteps(view, hasDaemon),
    ...includeIf(replacedDaemons.length > 0, { do: 'end-daemons' }),
  ]
}

/** The mount that the new one takes the place of. */
function findReplacedMount({ record, mountId, boot }: MountView): MountRecord['replaces'] {
  if (mountId === undefined) return undefined
  const staging = record?.boot === boot ? stagingOf(record, mountId) : undefined
  return { mountId: String(mountId), staging }
}

/** The staging directories of daemons that serve what was mounted until now, or before that. */
function listReplacedDaemons({ record, boot }: MountView): string[] {
  if (record === undefined || record.boot !== boot) return []
  return [...record.replacedDaemons, ...(record.staging === undefined ? [] : [record.staging])]
}

/** A mount of another type than the one that is there cannot come beneath it: that takes a moment without any. */
function planAttachSteps({ mounted, target, source }: MountView, hasDaemon: boolean): Step[] {
  const type = source === undefined || source.isDirectory ? 'directory' : 'file'
  const there = mounted === undefined ? target : mounted === 'broken' || mounted.isDirectory ? 'directory' : 'file'
  const guard = includeIf(hasDaemon, { do: 'guard' })
  if (mounted !== undefined && there === type) return [...guard, { do: 'replace' }]
  return [
    ...includeIf(mounted !== undefined, { do: 'detach-all', undo: 'old-mount' }),
    ...includeIf(there !== type, { do: 'set-target', type, undo: 'directory-target' }),
    { do: 'attach', undo: 'detach' },
    // After the mount: kubelet would take a guard alone for the volume.
    ...guard,
  ]
}
