import { closing, errorCode, FILE_TYPE, type Handle, type Host, orClosed, SYMLINK } from '../host/host.ts'
import { CSI_PLUGIN, volumeOfSubPath } from '../mount-table/kubelet-volume.ts'
import { type locationsOfHandles, type MountedLocation, pathWithin } from '../mount-table/tree-location.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { hasMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { volumeIdentity } from '../store/volume-identity.ts'
import { openLinkFree } from '../volume/kind/source-path.ts'
import type { Clonable } from './clonable.ts'
import type { CloneRequest, ContainerCloneRequest } from './order.ts'
import { type PodOnNode, refuseOtherPods, refuseOwnFiles } from './refused-sources.ts'

type Pod = Pick<ContainerCloneRequest, 'kubeletDir' | 'pod'>

export interface Where extends PodOnNode {
  /** Reads that table. */
  locationOf: ReturnType<typeof locationsOfHandles>
}

/**
 * A clone of what the runtime would have mounted, opened without following a link: below kubelet's directory only what is
 * this pod's.
 * @param handles gets what is to be closed
 * @param check is called with what was opened and its real path
 * @throws {Refusal} with what it is about still to be said
 */
export function cloneSource(
  session: Session,
  where: Where,
  { source, group: to }: CloneRequest,
  handles: DisposableStack,
  check: (handle: Handle, path: string) => void,
): Clonable {
  const { inodes, mounts } = session.host
  const { shown: opened, root, path: rootPath } = openMounted(session, where, source, handles)
  const path = inodes.pathOf(opened)
  refuseOwnFiles(session, where.table, opened, isOfKubelet(where, source))
  if (hasMountRecord(session, rootPath)) throw ownVolume(to)
  check(opened, path)
  // Of a part the volume's root tells, as the part may have another.
  const groupNow = () => inodes.stat(root).gid
  const from = groupNow()
  const identity = volumeIdentity(session, opened, inodes.stat(opened))
  const tree = mounts.cloneTree(opened)
  handles.use(closing(inodes, tree))
  return { path, identity, from, to, groupNow, root: { handle: root, path: rootPath }, tree, clonedFrom: opened }
}

export interface Mounted {
  /** What the container is to have. */
  shown: Handle
  /** The root of the volume: another one where kubelet has bound a part. */
  root: Handle
  /** The root's real path. */
  path: string
  /** The path of what is shown in the volume; '': it is all of it. */
  within: string
}

/**
 * What stands at a source, and the volume that it is of. Kubelet binds a part by the pod's name of a volume, but keeps
 * volumes by names of its own: that a path has a volume's name does not make what is bound a part of it.
 * @param handles gets what is to be closed
 * @throws {Refusal} with what it is about still to be said, also where it is a part of something else
 */
export function openMounted(session: Session, where: Where, source: string, handles: DisposableStack): Mounted {
  const { host } = session
  const hold = (handle: Handle) => {
    handles.use(closing(host.inodes, handle))
    return handle
  }
  const shown = hold(openSource(session, where, source))
  const volume = partOfVolume(where, source)
  if (volume === undefined) return { shown, root: shown, path: host.inodes.pathOf(shown), within: '' }
  const roots = [...openRoots(host, where, volume)].map(hold)
  const part = where.locationOf(shown)
  if (part === undefined) {
    throw new Refusal('has a subPath that is not in the volume any more: the container is created again by kubelet')
  }
  let why = roots.length === 0 ? UNMOUNTED : OF_SOMETHING_ELSE
  for (const root of roots) {
    const whole = where.locationOf(root)
    const within = whole && pathWithin(whole, part)
    if (whole === undefined || within === undefined) continue
    if (isAsRestricted(whole, part)) return { shown, root, path: host.inodes.pathOf(root), within }
    why = LESS_RESTRICTED
  }
  throw new Refusal(why)
}

const UNMOUNTED = 'has a subPath of a volume that is not mounted any more: the container is created again by kubelet'
const OF_SOMETHING_ELSE =
  'has a subPath of something else than the volume that kubelet has by this name: a hostPath with the name of a PersistentVolume (give the volume another name in the pod), or what is mounted inside of the volume (use a volume for that)'
const LESS_RESTRICTED =
  "has a subPath that is not restricted as the volume's mount is now: delete the pod, its subPaths are mounted anew with it"

const RESTRICTIONS: readonly string[] = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow', 'idmapped']

/** What kubelet binds of a volume has the restrictions of the volume's mount; another mount of the same may have less. */
function isAsRestricted(whole: MountedLocation, part: MountedLocation): boolean {
  return RESTRICTIONS.every((option) => !whole.options.includes(option) || part.options.includes(option))
}

/** A CSI driver of modekeep's may have another name than the usual, by which its volumes are not told from others'. */
function ownVolume(group: number | undefined): Refusal {
  return new Refusal(
    `is modekeep's own, so "allow" of the node's configuration decides: set the pod's fsGroup to ${group} and the volume's option ownership instead, and leave it out of the annotation`,
  )
}

/** Without a link. @throws {Refusal} for what another pod has */
export function openSource(session: Session, where: PodOnNode, source: string): Handle {
  const { host } = session
  const inPod = partsInPod(where, source)
  if (inPod !== undefined) return openParts(host, where.kubeletDir, inPod)
  return orClosed(host.inodes, openLinkFree(host, source, { what: 'its source', remedy: 'create it' }), (handle) => {
    refuseOtherPods(session, where, handle)
    return handle
  })
}

/** Whether kubelet has mounted a source in the pod's directory. @throws {Refusal} for another pod's */
export const isOfKubelet = (pod: Pod, source: string): boolean => partsInPod(pod, source) !== undefined

/** Below kubelet's directory; undefined where it is not. @throws {Refusal} for another pod's */
function partsInPod({ kubeletDir, pod }: Pod, source: string): string[] | undefined {
  if (!`${source}/`.startsWith(`${kubeletDir}/`)) return undefined
  const parts = source.slice(kubeletDir.length + 1).split('/')
  const isWhole = parts.length > 2 && parts.every((part) => !['', '.', '..'].includes(part))
  if (isWhole && parts[0] === 'pods' && parts[1] === pod.uid) return parts
  throw new Refusal(`lies at ${quoted(source)}, which is not in this pod's directory: use a volume of the pod`)
}

/** Kubelet's root may lie behind a link, which an administrator made; what is below it may not. */
function openParts({ inodes }: Host, kubeletDir: string, parts: readonly string[]): Handle {
  let here = inodes.openTrusted(kubeletDir)
  for (const part of parts) {
    using _ = closing(inodes, here)
    here = openPart(inodes, here, part)
  }
  return here
}

function openPart(inodes: Host['inodes'], parent: Handle, name: string): Handle {
  try {
    return orClosed(inodes, inodes.openEntry(parent, Buffer.from(name)), (entry) => {
      // Not asked of a server.
      if ((inodes.statMountPoint(entry).mode & FILE_TYPE) !== SYMLINK) return entry
      throw new Refusal(
        `has a symbolic link in its path (${quoted(name)}), which could lead anywhere: mount a directory`,
      )
    })
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR') throw error
    throw new Refusal(`has no source any more (${quoted(name)} is missing): the container is created again by kubelet`)
  }
}

/** The volume that a source is a part of, by kubelet's name of it; undefined: it is all of one. */
export function partOfVolume({ kubeletDir, pod }: Pod, source: string): string | undefined {
  const directory = `${kubeletDir}/pods/${pod.uid}`
  return source.startsWith(directory) ? volumeOfSubPath(source.slice(directory.length)) : undefined
}

/** Where kubelet has mounted a volume of this name: a CSI driver's one directory deeper. Whoever gets one closes it. */
export function* openRoots(host: Host, { kubeletDir, pod }: Pod, volume: string): Generator<Handle> {
  const volumes = ['pods', pod.uid, 'volumes']
  for (const plugin of host.files.list([kubeletDir, ...volumes].join('/'))) {
    const root = [...volumes, plugin, volume]
    const parts = plugin === CSI_PLUGIN ? [...root, 'mount'] : root
    try {
      yield openParts(host, kubeletDir, parts)
    } catch (error) {
      // Most plugins have no volume of the name.
      if (!(error instanceof Refusal)) throw error
    }
  }
}
