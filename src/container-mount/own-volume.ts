import { closing, explained, type Handle, type Host, unless } from '../host/host.ts'
import { mountFlags } from '../mount-table/flags.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { type MountRecord, mountRecords, requestOf } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { detachedTree } from '../volume/detached-tree.ts'
import { kindOf } from '../volume/index.ts'
import { mountsAgain } from '../volume/kind/kind.ts'
import type { Clonable } from './clonable.ts'
import type { CloneRequest } from './order.ts'
import { type Mounted, openMounted, type Where } from './source.ts'

/**
 * modekeep's own volume for a pod with a user namespace: what is mapped cannot be mapped again, so its source is mounted
 * once more, unmapped, as it was for the pod.
 * @param handles gets what is to be closed
 * @returns 'keep' where the volume is not mapped, so that the runtime maps it
 * @throws {Refusal} with what it is about still to be said
 */
export async function cloneOwn(
  session: Session,
  where: Where,
  order: CloneRequest,
  handles: DisposableStack,
): Promise<Clonable | 'keep'> {
  const { host } = session
  const { inodes } = host
  const { shown, root, path, within } = openMounted(session, where, order.source, handles)
  const record = recordOf(session, root, path)
  const { given, request } = record
  if (given.by !== 'idmap' || request.fsGroup === undefined || given.from === request.fsGroup) return 'keep'
  const asked = requestOf(record)
  const kind = kindOf(request.fsType)
  if (kind === undefined || !mountsAgain(kind)) {
    throw new Refusal(
      `is ${quoted(request.fsType)} and mapped, and cannot be mounted once more for the pod's user namespace: use ownership "auto" or "walk", or leave "hostUsers" out`,
    )
  }
  const source = kind.openSource?.(host, asked)
  if (source !== undefined) handles.use(closing(inodes, source.handle))
  const made = detachedTree(session, kind, asked, source)
  handles.defer(() => made.close())
  await made.make(undefined)
  if (made.volume !== record.volume) {
    throw new Refusal('has another source by now than the one that is mounted: delete the pod to mount that one')
  }
  const tree = partOf(host, made, { shown, within }, handles)
  const { set, clear } = mountFlags(request.mountOptions, request.readOnly)
  host.mounts.setFlags(tree, { set, clear })
  const { from } = given
  return {
    path: inodes.pathOf(shown),
    identity: record.volume,
    from,
    to: request.fsGroup,
    groupNow: () => from,
    tree,
    clonedFrom: made.clonedFrom,
    fsType: request.fsType,
  }
}

/** @throws {Refusal} where what is mounted is not what a record speaks of */
function recordOf(session: Session, root: Handle, path: string): MountRecord {
  const record = mountRecords.read(session, path)
  const { mountId } = session.host.inodes.statMountPoint(root)
  const isThere = record?.boot === session.host.bootId() && record.mounted?.mountId === String(mountId)
  if (record !== undefined && isThere) return record
  throw new Refusal(
    `is mounted at ${quoted(path)} without a record of modekeep's that says how: delete the pod, then it is mounted anew`,
  )
}

/** Of a container's subPath the part that kubelet has bound, found once more without following a link. */
function partOf(
  { inodes, mounts }: Host,
  made: ReturnType<typeof detachedTree>,
  { shown, within }: Pick<Mounted, 'shown' | 'within'>,
  handles: DisposableStack,
): Handle {
  if (within === '') return made.handle
  const part = openInside(inodes, made.clonedFrom ?? made.handle, within, handles)
  const [is, was] = [part && inodes.stat(part), inodes.stat(shown)]
  if (part === undefined || is?.inode !== was.inode || is.device !== was.device) {
    throw new Refusal('has a subPath that leads elsewhere by now: the container is created again by kubelet')
  }
  const tree = explained(
    () => mounts.cloneTree(part),
    () => ({
      EINVAL: 'has a subPath of a disk or an image, which needs Linux 6.15 or newer on the node: leave subPath out',
    }),
  )
  handles.use(closing(inodes, tree))
  return tree
}

/** Undefined where nothing is there. The path is the kernel's, without a link: whoever puts one there is not followed. */
function openInside(inodes: Host['inodes'], top: Handle, path: string, handles: DisposableStack): Handle | undefined {
  let here: Handle | undefined = top
  for (const name of path.split('/')) {
    const parent: Handle = here
    here = unless('ENOENT ENOTDIR', () => inodes.openEntry(parent, Buffer.from(name)))
    if (here === undefined) return undefined
    handles.use(closing(inodes, here))
  }
  return here
}
