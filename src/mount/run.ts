import { applyGroupStep } from '../fsgroup/apply-group-step.ts'
import type { MountPoint } from '../kernel/mount-table/mount-point.ts'
import { FileError } from '../kernel/system-error.ts'
import { forgetMountRecord } from '../state/forget.ts'
import { type AppliedGroup, type MountRecord, mountRecords } from '../state/mount-record.ts'
import { type Session, warnOnFailure } from '../state/session.ts'
import { attachGuardMount, endHangingDaemon, endReplacedDaemons } from '../volume/daemon.ts'
import type { DetachedTree } from '../volume/detached-tree.ts'
import { listStagedProcesses } from '../volume/kind/staged.ts'
import {
  attachTreeAtPoint,
  cloneMountForRestore,
  createEmptyMountPoint,
  detachAllMounts,
  replaceMounts,
  type SavedMount,
} from './attach.ts'
import type { MountStep } from './plan.ts'

type UndoableMountStep = Extract<MountStep, { undo: unknown }>

/**
 * Runs a mount plan. If a step fails, the inverses of the earlier steps run in reverse order.
 * @returns how the group was applied
 * @throws the error of the step that failed
 */
export async function runMountPlan(
  session: Session,
  point: MountPoint,
  tree: DetachedTree,
  steps: readonly MountStep[],
): Promise<AppliedGroup> {
  const { host, config } = session
  const { stateDir } = config
  // Locks that are held until the tree is attached or discarded.
  const held = new DisposableStack()
  let given: AppliedGroup = { by: 'none' }
  const done: UndoableMountStep[] = []
  let written: MountRecord | undefined
  let saved: SavedMount | undefined

  function write(record: MountRecord): void {
    written = record
    mountRecords.write(session, record)
  }

  async function apply(step: MountStep): Promise<void> {
    switch (step.do) {
      case 'record':
        return write({ ...step.record, hadSecrets: tree.hadSecrets })
      case 'make-tree':
        await tree.make(step.group)
        if (step.withheld !== undefined) given = { by: 'none', why: step.withheld }
        if (step.group !== undefined) given = { by: 'option', why: 'by mount options' }
        // If this call crashes from now on, the next one must find its changes to the volume.
        if (written && written.volume !== tree.volume) write({ ...written, volume: tree.volume })
        return
      case 'set-flags':
        return tree.setFlags(step)
      case 'own-root':
      case 'own-volume':
      case 'map-group':
        given = await applyGroupStep(session, tree, step, held)
        return
      case 'record-ready':
        return write({ ...step.record, ...readMadeFacts(step.record) })
      case 'detach-all':
        await endHangingDaemon(session, point, written)
        saved = cloneMountForRestore(host, point)
        try {
          return void detachAllMounts(host, point)
        } catch (error) {
          // The failed step may have removed the mount already, so it is undone too.
          undo(step)
          throw error
        }
      case 'set-target':
        return createEmptyMountPoint(host, point, step.type)
      case 'guard':
        return attachGuardMount(host, point)
      case 'attach':
        return attachTreeAtPoint(host, point, tree.handle)
      case 'end-daemons':
        return endReplacedDaemons(session, point.path)
      case 'replace':
        await endHangingDaemon(session, point, written)
        return replaceMounts(host, point, tree.handle, tree.source)
      default:
        step satisfies never
    }
  }

  function readMadeFacts({ daemons }: MountRecord): Partial<MountRecord> {
    // statMountPoint makes no request to the daemon, which may hang from the beginning.
    const { mountId, device } = host.inodes.statMountPoint(tree.handle)
    const mounted = { mountId: String(mountId), device, namespace: host.mountNamespace(), since: Date.now() }
    const { volume, staging, hadSecrets, hiddenSubmounts } = tree
    // The program itself has ended by now, and the processes that it left behind serve the mount.
    const served = (name: string) => ({ staging: name, processes: listStagedProcesses(host, stateDir, name) })
    return {
      ...{ given, volume, staging, hadSecrets, hiddenSubmounts },
      daemons: staging === undefined ? daemons : [...(daemons ?? []), served(staging)],
      mounted: { ...mounted, ...tree.deviceFacts },
    }
  }

  /** Logs an inverse that fails and runs the others, because the pod's author needs the error of the failed step. */
  function undo({ do: name, undo: inverse }: UndoableMountStep): void {
    warnOnFailure(session, `could not undo "${name}"`, () => {
      if (inverse === 'close-tree') tree.close()
      else if (inverse === 'directory-target') createEmptyMountPoint(host, point, 'directory')
      else if (inverse === 'detach') detachAllMounts(host, point)
      else if (inverse === 'old-mount') saved?.restore()
      else if (inverse.restore) write(inverse.restore)
      else {
        // The record is removed last, because the next call finds by it what could not be removed.
        held.dispose()
        forgetMountRecord(session, point.path, written?.volume)
      }
    })
  }

  /**
   * Puts back the walk of a mount that is not made, because no unmount may follow: kubelet unmounts no volume whose mount failed.
   * Runs while the record still exists, so that a crash leaves the restore to the next call. A walk that failed itself stays for
   * the next call to continue; so does a restore where records cannot be written, because no inode is changed then.
   */
  async function restoreFinishedWalk(record: MountRecord, error: unknown): Promise<void> {
    if (given.by !== 'walk' || error instanceof FileError) return
    // Other calls see the volume as in use until then, and leave its restore to this one.
    held.dispose()
    const { restoreVolumeIfPending } = await import('./unmount.ts')
    await restoreVolumeIfPending(session, record)
  }

  try {
    for (const step of steps) {
      await apply(step)
      if ('undo' in step) done.push(step)
    }
    return given
  } catch (error) {
    // `record-ready` has the inverse of `record`, which comes last.
    const undone = done.some((step) => step.do === 'record') ? done.filter((step) => step.do !== 'record-ready') : done
    for (const step of undone.reverse()) {
      const endsRecord = typeof step.undo === 'object' && step.undo.restore === undefined
      if (endsRecord && written) await restoreFinishedWalk(written, error)
      undo(step)
    }
    throw error
  } finally {
    tree.close()
    saved?.[Symbol.dispose]()
    held.dispose()
  }
}
