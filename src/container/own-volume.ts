import { createFault } from '../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, type Handle, type Host, refuseOnErrno, tolerateErrno } from '../kernel/host.ts'
import { createMountRestrictionsReader, parseMountFlags } from '../kernel/mount-table/mount-flags.ts'
import { snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import { hasMountRecord, type MountRecord, mountRecords, rebuildMountRequest } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { createDetachedTree } from '../volume/detached-tree.ts'
import { findVolumeKind } from '../volume/index.ts'
import { canRemountSameContent } from '../volume/kind/kind.ts'
import type { CloneRequest, OwnVolumeMountsRequest } from './clone-request.ts'
import {
  type CloneSource,
  type CloneSourceContext,
  findSubPathVolume,
  type OpenedSourceVolume,
  openKubeletVolumeRoots,
  openSourcePath,
  openSourceVolume,
} from './clone-source.ts'

/**
 * Clones modekeep's own volume for a pod with a user namespace. The kernel does not map a mapped mount again, so the volume's
 * source is mounted once more, unmapped, with the pod's options.
 * @param handles gets the opened handles
 * @returns 'keep' if the volume is not mapped: the runtime maps it then
 * @throws {Refusal} whose message the caller prefixes with the volume
 */
export async function cloneOwnVolume(
  session: Session,
  context: CloneSourceContext,
  clone: CloneRequest,
  handles: DisposableStack,
): Promise<CloneSource | 'keep'> {
  const { host } = session
  const { inodes } = host
  const { shown, root, path, within } = openSourceVolume(session, context, clone.source, handles)
  const record = readMatchingMountRecord(session, root, path)
  const { given, request } = record
  if (given.by !== 'idmap' || request.fsGroup === undefined || given.from === request.fsGroup) return 'keep'
  const mountRequest = rebuildMountRequest(record)
  const kind = findVolumeKind(request.fsType)
  if (kind === undefined || !canRemountSameContent(kind)) {
    throw Refusal.of(
      'map-own-volume',
      `is ${quoteValue(request.fsType)} and mapped, and cannot be mounted once more for the pod's user namespace`,
      `use ownership "auto" or "walk", or leave "hostUsers" out`,
    )
  }
  const source = kind.openSource?.(host, mountRequest)
  if (source !== undefined) handles.use(deferHandleClose(inodes, source.handle))
  const made = createDetachedTree(session, kind, mountRequest, source)
  handles.defer(() => made.close())
  await made.make(undefined)
  if (made.volume !== record.volume) {
    throw Refusal.of(
      'map-own-volume',
      'has another source by now than the one that is mounted',
      'delete the pod to mount that one',
    )
  }
  const tree = cloneOwnSubPath(host, made, { shown, within }, handles)
  const { set, clear } = parseMountFlags(request.mountOptions, request.readOnly)
  host.mounts.setFlags(tree, { set, clear })
  const { from } = given
  return {
    path: inodes.pathOf(shown),
    identity: record.volume,
    from,
    to: request.fsGroup,
    readGroup: () => from,
    tree,
    clonedFrom: made.clonedFrom,
    fsType: request.fsType,
  }
}

/** Reads the record of a mounted volume. @throws {Refusal} if no record describes this very mount */
function readMatchingMountRecord(session: Session, root: Handle, path: string): MountRecord {
  const record = mountRecords.read(session, path)
  const { mountId } = session.host.inodes.statMountPoint(root)
  const isMatching = record?.boot === session.host.bootId() && record.mounted?.mountId === String(mountId)
  if (record !== undefined && isMatching) return record
  throw Refusal.of(
    'map-own-volume',
    `is mounted at ${quoteValue(path)} without a record of modekeep's that says how`,
    'delete the pod, then it is mounted anew',
  )
}

/** Clones the part that a subPath names, which is opened again in the new mount without following links. */
function cloneOwnSubPath(
  { inodes, mounts }: Host,
  made: ReturnType<typeof createDetachedTree>,
  { shown, within }: Pick<OpenedSourceVolume, 'shown' | 'within'>,
  handles: DisposableStack,
): Handle {
  if (within === '') return made.handle
  const part = openLinkFreePath(inodes, made.clonedFrom ?? made.handle, within, handles)
  const [found, bound] = [part && inodes.stat(part), inodes.stat(shown)]
  if (part === undefined || found?.inode !== bound.inode || found.device !== bound.device) {
    throw Refusal.of(
      'map-sub-path',
      'has a subPath that leads elsewhere by now',
      'the container is created again by kubelet',
    )
  }
  const tree = refuseOnErrno(
    () => mounts.cloneTree(part),
    () => ({
      EINVAL: createFault(
        'map-own-volume',
        'has a subPath of a disk or an image, which needs Linux 6.15 or newer on the node',
        'leave subPath out',
      ),
    }),
  )
  handles.use(deferHandleClose(inodes, tree))
  return tree
}

/** Opens a path that the kernel reported. Links that were created in it since are not followed. Undefined if it is missing. */
function openLinkFreePath(
  inodes: Host['inodes'],
  top: Handle,
  path: string,
  handles: DisposableStack,
): Handle | undefined {
  let current: Handle | undefined = top
  for (const name of path.split('/')) {
    const parent: Handle = current
    current = tolerateErrno('ENOENT ENOTDIR', () => inodes.openEntry(parent, Buffer.from(name)))
    if (current === undefined) return undefined
    handles.use(deferHandleClose(inodes, current))
  }
  return current
}

/**
 * Reads the restrictions (`nosuid`, `noexec`, …) of the mounts that are modekeep's own volumes, or parts of them.
 * @returns the mount options of each mount of the request. A mount that cannot be read has none, and the log has a warning
 */
export function readOwnVolumeRestrictions(session: Session, request: OwnVolumeMountsRequest): string[][] {
  const { host } = session
  const readRestrictions = createMountRestrictionsReader(host)
  const context = { ...request, table: snapshotMountTable(host) }
  return request.mounts.map(({ destination, source }) => {
    try {
      using handles = new DisposableStack()
      const shown = openSourcePath(session, context, source)
      handles.use(deferHandleClose(host.inodes, shown))
      if (!hasOwnVolumeRecord(session, request, source, shown, handles)) return []
      const restrictions = host.inodes.statMountPoint(shown).mountRoot ? readRestrictions(shown) : undefined
      if (restrictions !== undefined) return restrictions
      session.warn(
        `the volume at ${quoteValue(destination)} is not mounted at ${quoteValue(source)}: its mount options are unknown`,
        'map-options',
      )
    } catch (error) {
      session.warn(
        `the mount options of the volume at ${quoteValue(destination)} could not be read: ${formatError(error)}`,
        'map-options',
      )
    }
    return []
  })
}

/** Returns whether the volume has a mount record. The path of a `subPath` contains the pod's name of its volume. */
function hasOwnVolumeRecord(
  session: Session,
  request: OwnVolumeMountsRequest,
  source: string,
  shown: Handle,
  handles: DisposableStack,
): boolean {
  const { host } = session
  const volume = findSubPathVolume(request, source)
  if (volume === undefined) return hasMountRecord(session, host.inodes.pathOf(shown))
  const roots = [...openKubeletVolumeRoots(host, request, volume)]
  for (const root of roots) handles.use(deferHandleClose(host.inodes, root))
  return roots.some((root) => hasMountRecord(session, host.inodes.pathOf(root)))
}
