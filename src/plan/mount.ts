import { mountFlags } from '../mount-table/flags.ts'
import type { MountRequest } from '../protocol/request.ts'
import { type MountRecord, newMountRecord, requestKey } from '../state/mount-record.ts'
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
 * @param persistent whether the data of a volume of this fsType outlives its mount: what does not is never replaced
 */
export function planMount(request: MountRequest, view: View, persistent: (fsType: string) => boolean): MountPlan {
  const { record, mounted } = view
  const ours = mounted !== undefined && mounted !== 'broken' && isOurs(record, view) ? record : undefined
  if (ours) {
    const change = whatChanged(ours, request, view)
    if (change === undefined) return { decision: 'ready', reason: 'the mount is there and as asked for', steps: [] }
    if (!persistent(ours.fsType)) {
      return refuse(`${change}, and replacing this ${ours.fsType} would lose its files: delete the pod to apply it`)
    }
    return { decision: 'replace', reason: change, steps: prepare(request, view).concat({ do: 'replace' }) }
  }
  if (mounted !== undefined) {
    if (!isKubeletVolume(request.directory)) {
      return refuse(
        `something else is mounted at ${request.directory}, which is no volume directory of kubelet's: unmount it first`,
      )
    }
    if (mounted !== 'broken' && !persistent(request.fsType)) {
      return refuse(
        `a mount without a record is there, and if it is this ${request.fsType}, replacing it would lose its files: delete the pod to mount a new one`,
      )
    }
    const reason = mounted === 'broken' ? 'what is mounted does not answer' : 'something else is mounted'
    return { decision: 'replace', reason, steps: prepare(request, view).concat({ do: 'replace' }) }
  }
  const reason = record?.phase === 'preparing' ? 'an earlier call was interrupted' : 'nothing is mounted'
  return { decision: 'fresh', reason, steps: prepare(request, view).concat({ do: 'attach', undo: 'detach' }) }
}

function refuse(reason: string): MountPlan {
  return { decision: 'refuse', reason, steps: [] }
}

/** Only what kubelet made for a FlexVolume is modekeep's to clear of mounts it has no record of. */
export function isKubeletVolume(directory: string): boolean {
  return /\/volumes\/[^/]+~[^/]+\/[^/]+$/.test(directory)
}

/** The topmost mount is the one the record speaks of. */
export function isOurs(record: MountRecord | undefined, view: View): record is MountRecord {
  if (record === undefined || view.mounted === undefined || view.mounted === 'broken') return false
  return record.phase === 'ready' && record.boot === view.boot && record.mountId === String(view.mounted.mountId)
}

function whatChanged(record: MountRecord, request: MountRequest, view: View): string | undefined {
  if (record.request !== requestKey(request)) return 'the options changed'
  const { walked } = view
  if (record.walkGroup >= 0 && walked && (!walked.complete || walked.group !== record.walkGroup)) {
    return 'an interrupted call has regrouped the volume'
  }
  if (view.source === undefined || view.mounted === undefined || view.mounted === 'broken') return undefined
  const { device, inode } = view.mounted
  return device === view.source.device && inode === view.source.inode
    ? undefined
    : 'the source is another directory now'
}

/**
 * Up to the point where the new mount is whole. A mount that is there keeps its record until then: others must see it as
 * a holder of its volume.
 */
function prepare(request: MountRequest, view: View): Step[] {
  const record = newMountRecord(request, view.boot, view.source)
  // Without a mount a record is what a dead call left.
  const undo = { restore: view.mounted === undefined ? undefined : view.record }
  const preparing: Step[] = view.mounted === undefined ? [{ do: 'record', record, undo }] : []
  return [
    ...preparing,
    { do: 'make-tree', undo: 'close-tree' },
    { do: 'set-flags', ...mountFlags(request.mountOptions, request.readOnly) },
    ...ownership(request, record),
    { do: 'record-ready', record, undo },
  ]
}

function ownership(request: MountRequest, record: MountRecord): Step[] {
  if (record.walkGroup < 0) return []
  const group = record.walkGroup
  const access = request.groupAccess
  if (record.volume === '') return [{ do: 'own-root', group, access }]
  return [{ do: 'own-volume', group, access, volume: record.volume, policy: request.changePolicy }]
}
