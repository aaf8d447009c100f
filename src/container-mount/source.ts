import { closing, errorCode, FILE_TYPE, type Handle, type Host, orClosed, SYMLINK } from '../host/host.ts'
import { CSI_PLUGIN, volumeOfSubPath } from '../mount-table/kubelet-volume.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { Session } from '../store/session.ts'
import { volumeIdentity } from '../store/volume-identity.ts'
import { holdsOwnRecords, openLinkFree } from '../volume/kind/source-path.ts'
import type { Clonable } from './clonable.ts'
import type { CloneOrder, ContainerOrder } from './order.ts'

export type Where = Pick<ContainerOrder, 'kubeletDir' | 'pod'>

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
  { source, group: to }: CloneOrder,
  handles: DisposableStack,
  check: (handle: Handle, path: string) => void,
): Clonable {
  const { host, config } = session
  const { inodes, mounts } = host
  const opened = openSource(host, where, source)
  handles.use(closing(inodes, opened))
  const path = inodes.pathOf(opened)
  if (holdsOwnRecords(path, config)) {
    throw new Refusal(`is of ${quoted(path)}, which holds modekeep's own records: name another directory`)
  }
  check(opened, path)
  const groupNow = () => groupOf(host, where, source, opened)
  const from = groupNow()
  const identity = volumeIdentity(session, opened, inodes.stat(opened))
  const tree = mounts.cloneTree(opened)
  handles.use(closing(inodes, tree))
  return { path, identity, from, to, groupNow, tree, clonedFrom: opened }
}

/**
 * What stands at the source of one of modekeep's own volumes, and at the volume's directory, which is another one where
 * kubelet has bound a part.
 * @param handles gets what is to be closed
 */
export function openMounted(
  host: Host,
  where: Where,
  source: string,
  handles: DisposableStack,
): { shown: Handle; root: Handle; path: string } {
  const { inodes } = host
  const hold = (handle: Handle) => {
    handles.use(closing(inodes, handle))
    return handle
  }
  const shown = hold(openSource(host, where, source))
  const volume = partOfVolume(where, source)
  if (volume === undefined) return { shown, root: shown, path: inodes.pathOf(shown) }
  for (const root of openRoots(host, where, volume)) {
    hold(root)
    if (inodes.statMountPoint(root).device === inodes.statMountPoint(shown).device) {
      return { shown, root, path: inodes.pathOf(root) }
    }
  }
  throw new Refusal('has a subPath of a volume that is not mounted any more: the container is created again by kubelet')
}

function openSource(host: Host, where: Where, source: string): Handle {
  const inPod = partsInPod(where, source)
  if (inPod !== undefined) return openParts(host, where.kubeletDir, inPod)
  return orClosed(host.inodes, openLinkFree(host, source, { what: 'its source', remedy: 'create it' }), (handle) => {
    refuseOtherPods(host, where, handle)
    return handle
  })
}

/** Kubelet's directory may have another name too. */
function refuseOtherPods({ inodes }: Host, { kubeletDir }: Where, handle: Handle): void {
  const kubelets = inodes.openTrusted(kubeletDir)
  using _ = closing(inodes, kubelets)
  const path = inodes.pathOf(handle)
  if (!`${path}/`.startsWith(`${inodes.pathOf(kubelets)}/`)) return
  throw new Refusal(`lies at ${quoted(path)}, in kubelet's own directory: use a volume of the pod`)
}

/** Below kubelet's directory; undefined where it is not. @throws {Refusal} for another pod's */
function partsInPod({ kubeletDir, pod }: Where, source: string): string[] | undefined {
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
function partOfVolume({ kubeletDir, pod }: Where, source: string): string | undefined {
  const directory = `${kubeletDir}/pods/${pod.uid}`
  return source.startsWith(directory) ? volumeOfSubPath(source.slice(directory.length)) : undefined
}

/** Of a subPath the volume it is a part of tells the group, as that of a directory in it may be another. */
function groupOf(host: Host, where: Where, source: string, handle: Handle): number {
  const { inodes } = host
  const own = inodes.stat(handle)
  const volume = partOfVolume(where, source)
  if (volume === undefined) return own.gid
  for (const root of openRoots(host, where, volume)) {
    using _ = closing(inodes, root)
    const { device, gid } = inodes.stat(root)
    if (device === own.device) return gid
  }
  return own.gid
}

/** Where kubelet has mounted a volume of this name: a CSI driver's one directory deeper. Whoever gets one closes it. */
function* openRoots(host: Host, { kubeletDir, pod }: Where, volume: string): Generator<Handle> {
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
