import type { FsGroupRequest } from '../config/mount-request.ts'
import { Refusal } from '../errors/refusal.ts'
import { createGroupSwapMap } from '../kernel/id-map.ts'
import { computeRequestedOwnership, extractOwnership, findUnchangeableInodeType } from '../ownership/inode/policy.ts'
import { createInodeRecord } from '../ownership/inode/record.ts'
import { changeInode } from '../ownership/walk/change.ts'
import { type AppliedGroup, REQUESTED_METHOD_REASON } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { refuseRenamedVolume } from '../state/volume-identity.ts'
import { hasVolumeUniformGroup } from '../state/volume-journal.ts'
import { formatSkippedByReason } from '../state/volume-record.ts'
import type { DetachedTree } from '../volume/detached-tree.ts'
import { applyGroupToVolume } from './apply-to-volume.ts'
import type { GroupWalkStep, MapGroupStep } from './group-plan.ts'
import { reserveVolume } from './holders.ts'
import { applyIdMap, SEVERAL_GROUPS_REASON, UnmappableVolume } from './map-group.ts'
import { isRootWithoutSetGid, SET_GID_REMEDY, setDirectorySetGid, setRootSetGid } from './root-bit.ts'
import { refuseSystemGroup } from './system-group.ts'

/**
 * Applies the pod's group to a detached tree.
 * @param held receives the locks that must be held until the tree is attached or discarded
 * @throws {Refusal} also if the group cannot be mapped, and no other step is allowed
 */
export async function applyGroupStep(
  session: Session,
  tree: DetachedTree,
  step: GroupWalkStep | MapGroupStep,
  held: DisposableStack,
): Promise<AppliedGroup> {
  if (step.do !== 'map-group') return applyGroupByWalk(session, tree, step, REQUESTED_METHOD_REASON, held)
  const isRequested = tree.request.ownership === 'idmap'
  try {
    const from = await mapVolumeGroup(session, tree, step, held)
    const isPlain = from !== step.to && isRootWithoutSetGid(session, tree.handle)
    const why = `${isRequested ? REQUESTED_METHOD_REASON : 'the file system maps groups'}${isPlain ? NEW_FILES_GROUP_REASON : ''}`
    return { by: 'idmap', from, why, ...(isPlain && { hasPlainRoot: true }) }
  } catch (error) {
    if (!(error instanceof UnmappableVolume) || isRequested) throw error
    const { why } = error
    const { otherwise } = step
    if (otherwise === 'refuse') {
      throw Refusal.of(
        'idmap-impossible',
        `the group of this volume can only be given by mapping, but ${why}`,
        `leave "ownership" out, or mount a directory that can be walked`,
      )
    }
    // Some volumes turn out to be unmappable only after the tree was mapped.
    await tree.makeAnew()
    return otherwise === 'nothing' ? { by: 'none', why } : applyGroupByWalk(session, tree, otherwise, why, held)
  }
}

async function applyGroupByWalk(
  session: Session,
  tree: DetachedTree,
  step: GroupWalkStep,
  why: string,
  held: DisposableStack,
): Promise<AppliedGroup> {
  const { fsGroup } = step
  const applied: AppliedGroup = { by: 'walk', group: fsGroup.groupId, why }
  if (step.do === 'own-root') {
    applyGroupToRoot(session, tree, fsGroup)
    return applied
  }
  const { source, requestedPath, location, request } = tree
  const { pod, directory, restoreOnUnmount } = request
  const volume = step.volume ?? tree.volume
  if (volume === undefined || source === undefined)
    throw new Error('a volume that goes with its mount is walked by its root alone')
  const mount = { pod, directory, restoreOnUnmount, isMounted: step.isMounted }
  const target = { volume, source, requestedPath, location, ...mount }
  const { lock, skipped } = await applyGroupToVolume(session, tree.handle, fsGroup, target)
  held.use(lock)
  const text = skipped && formatSkippedByReason(fsGroup.groupId, skipped)
  if (text === undefined) return applied
  session.note({ skipped: text })
  return { ...applied, skipped: text }
}

/** Changes the root of a volume that ends with its mount: it has no other inodes yet, and is never restored. */
function applyGroupToRoot({ host: { inodes } }: Session, { handle }: DetachedTree, fsGroup: FsGroupRequest): void {
  const root = { handle, stat: inodes.stat(handle), inspectedAtMs: 0, capability: undefined, acl: undefined }
  if (findUnchangeableInodeType(root.stat)) return
  const wanted = computeRequestedOwnership(root.stat, fsGroup)
  changeInode(
    inodes,
    root,
    createInodeRecord(undefined, root, new Uint8Array(), extractOwnership(root.stat), wanted, undefined),
  )
}

/**
 * Makes the tree show its volume's group as another. The group on disk must not change from now on. Until the mount is
 * attached, the held reservation shows other calls that the volume is in use.
 * @returns the group on disk
 * @throws {UnmappableVolume} if this file system or this kernel cannot do it
 */
async function mapVolumeGroup(
  session: Session,
  tree: DetachedTree,
  step: MapGroupStep,
  held: DisposableStack,
): Promise<number> {
  const { inodes } = session.host
  const { source, request } = tree
  const { pod, directory } = request
  // Undefined if the volume ends with its mount, so that no other call can use it.
  const volume = step.volume ?? tree.volume
  for (;;) {
    const group = step.from ?? inodes.stat(tree.handle).gid
    using reserved = new DisposableStack()
    if (volume !== undefined) {
      const reservation = { volume, source, location: tree.location, group, pod, directory }
      // Mapped pods may have different groups, so only a call that works on the volume conflicts.
      reserved.use(await reserveVolume(session, reservation, directory, () => {}))
      refuseRenamedVolume(session, volume, tree.handle, source ?? '')
      if (!hasVolumeUniformGroup(session, volume)) throw new UnmappableVolume(SEVERAL_GROUPS_REASON)
    }
    // The walk that this call waited for may have changed the group.
    if (step.from === undefined && inodes.stat(tree.handle).gid !== group) continue
    if (group !== step.to) {
      const { handle, clonedFrom } = tree
      applyIdMap(session, handle, clonedFrom, createGroupSwapMap(group, step.to), request.fsType)
      // Checked after the map, because a rule that permits the group is useless where the kernel cannot map.
      refuseSystemGroup(session, { tree: handle, clonedFrom }, group, [request])
      if (volume === undefined) setDirectorySetGid(session, handle)
      else if (request.rootSetGid) await setRootSetGid(session, { volume, source: source ?? '', pod }, handle)
    }
    held.use(reserved.move())
    return group
  }
}

/** Root has group 0, so its new files get the volume's group only by set-gid bits. */
const NEW_FILES_GROUP_REASON = `; its root has no set-gid bit, so what root creates there does not get the group: ${SET_GID_REMEDY}`
