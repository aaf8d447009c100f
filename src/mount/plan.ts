import { giveGroup, type KindFacts } from '../fs-group/decide.ts'
import { mountFlags } from '../mount-table/flags.ts'
import { isKubeletVolume } from '../mount-table/kubelet-volume.ts'
import { isSameMount, type MountRequest } from '../request/mount-request.ts'
import { isOurs, type MountRecord, newMountRecord, stagingOf } from '../store/mount-record.ts'
import type { Step } from './step.ts'
import type { View } from './view.ts'

export interface MountPlan {
  decision: 'ready' | 'fresh' | 'replace' | 'refuse'
  /** Why, in words, for the log and for a refusal. */
  reason: string
  steps: Step[]
}

/**
 * Decides what a `mount` call does. Pure.
 * @param kindOf what is planned with of a fsType: the request's, and that of a mount that is there
 * @param isKept a mount that fails is tried again, so that its record stays
 */
export function planMount(
  request: MountRequest,
  view: View,
  kindOf: (fsType: string) => KindFacts,
  isKept = false,
): MountPlan {
  const { record, mounted } = view
  const ours = mounted !== undefined && mounted !== 'broken' && isOurs(record, view) ? record : undefined
  if (ours) {
    const change = whatChanged(ours, request, view)
    if (change === undefined) {
      return { decision: 'ready', reason: 'the mount is there and as asked for', steps: finish(ours, view) }
    }
    if (!kindOf(ours.request.fsType).persistent) {
      return refuse(
        `${change}, and replacing this ${ours.request.fsType} would lose its files: delete the pod to apply it`,
      )
    }
    return act('replace', change, request, view, kindOf(request.fsType), isKept)
  }
  if (mounted !== undefined) {
    if (!isKubeletVolume(request.directory) && !isBeingReplaced(record, view)) {
      return refuse(
        `something else is mounted at ${request.directory}, which is no volume directory of kubelet's: unmount it first`,
      )
    }
    if (mounted !== 'broken' && !kindOf(request.fsType).persistent && !isBeingReplaced(record, view)) {
      return refuse(
        `a mount without a record is there, and if it is this ${request.fsType}, replacing it would lose its files: delete the pod to mount a new one`,
      )
    }
    const reason = mounted === 'broken' ? 'what is mounted does not respond' : 'something else is mounted'
    return act('replace', reason, request, view, kindOf(request.fsType), isKept)
  }
  if (view.target === 'file' && record === undefined && !isKubeletVolume(request.directory)) {
    return refuse(`mount directory ${request.directory} is a file: name a directory`)
  }
  const reason =
    record !== undefined && record.mounted === undefined ? 'an earlier call was interrupted' : 'nothing is mounted'
  return act('fresh', reason, request, view, kindOf(request.fsType), isKept)
}

function refuse(reason: string): MountPlan {
  return { decision: 'refuse', reason, steps: [] }
}

/** What a call that crashed once the mount was there has left to do. */
function finish({ replacedDaemons }: MountRecord, { needsGuard }: View): Step[] {
  return [
    ...(needsGuard ? [{ do: 'guard' } as const] : []),
    ...(replacedDaemons.length === 0 ? [] : [{ do: 'end-daemons' } as const]),
  ]
}

/** A call crashed before the new mount was in its place. */
function isBeingReplaced(record: MountRecord | undefined, { mounted, boot }: View): boolean {
  if (record === undefined || mounted === undefined || mounted === 'broken') return false
  return record.boot === boot && record.replaces?.mountId === String(mounted.mountId)
}

function whatChanged(record: MountRecord, request: MountRequest, view: View): string | undefined {
  if (!isSameMount(record.request, request)) return 'the options changed'
  const { walked, source, mounted } = view
  const { given } = record
  if (given.by === 'walk' && walked && (!walked.complete || walked.group !== given.group)) {
    return 'an interrupted call has regrouped the volume'
  }
  if (source === undefined || mounted === undefined || mounted === 'broken') return undefined
  if (record.identity !== source.identity) return 'the source is another one now'
  const { root, isDirectory } = source
  if (root === undefined) return undefined
  if (mounted.device !== root.device || mounted.inode !== root.inode) {
    return `the source is another ${isDirectory ? 'directory' : 'file'} now`
  }
  if (given.by === 'idmap' && request.idmapFrom === undefined && given.from !== root.group) {
    return 'the volume has another group on disk now'
  }
  return undefined
}

/**
 * The steps up to the new mount. A mount that is there keeps its record until the new one is whole: others must see it
 * as a holder of its volume.
 */
function act(
  decision: 'fresh' | 'replace',
  reason: string,
  request: MountRequest,
  view: View,
  kind: KindFacts,
  isKept: boolean,
): MountPlan {
  const given = giveGroup(request, view.source, kind)
  if (given.refusal !== undefined) return refuse(given.refusal)
  const { mounted } = view
  const replacedDaemons = daemonsOf(view)
  const record = { ...newMountRecord(request, view.boot, view.source), replaces: replacedBy(view), replacedDaemons }
  // Without a mount a record is what an interrupted call left.
  const undo = { restore: mounted === undefined && !isKept ? undefined : view.record }
  const preparing: Step[] = mounted === undefined ? [{ do: 'record', record, undo }] : []
  const steps: Step[] = [
    ...preparing,
    { do: 'make-tree', group: given.byOption, undo: 'close-tree' },
    { do: 'set-flags', ...mountFlags(request.mountOptions, request.readOnly) },
    ...given.steps,
    { do: 'record-ready', record, undo },
    ...attachSteps(view, kind.hasDaemon ?? false),
    ...(replacedDaemons.length === 0 ? [] : [{ do: 'end-daemons' } as const]),
  ]
  return { decision, reason, steps }
}

/** The mount that the new one takes the place of. */
function replacedBy({ record, mounted, boot }: View): MountRecord['replaces'] {
  if (mounted === undefined || mounted === 'broken') return undefined
  const staging = record?.boot === boot ? stagingOf(record, mounted.mountId) : undefined
  return { mountId: String(mounted.mountId), staging }
}

/** The staging directories of daemons that serve what was mounted until now, or before that. */
function daemonsOf({ record, boot }: View): string[] {
  if (record === undefined || record.boot !== boot) return []
  return [...record.replacedDaemons, ...(record.staging === undefined ? [] : [record.staging])]
}

/** A mount of another type than the one that is there cannot come beneath it: that takes a moment without any. */
function attachSteps({ mounted, target, source }: View, hasDaemon: boolean): Step[] {
  const type = source === undefined || source.isDirectory ? 'directory' : 'file'
  const there = mounted === undefined ? target : mounted === 'broken' || mounted.isDirectory ? 'directory' : 'file'
  if (mounted !== undefined && there === type)
    return [...(hasDaemon ? [{ do: 'guard' } as const] : []), { do: 'replace' }]
  const clear: Step[] = mounted === undefined ? [] : [{ do: 'detach-all', undo: 'old-mount' }]
  const place: Step[] = there === type ? [] : [{ do: 'set-target', type, undo: 'directory-target' }]
  // After the mount: kubelet would take a guard alone for the volume.
  const guard: Step[] = hasDaemon ? [{ do: 'guard' }] : []
  return [...clear, ...place, { do: 'attach', undo: 'detach' }, ...guard]
}
