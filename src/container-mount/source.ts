import { closing, errorCode, FILE_TYPE, type Handle, type Host, orClosed, SYMLINK } from '../host/host.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { Session } from '../store/session.ts'
import { volumeIdentity } from '../store/volume-identity.ts'
import { holdsOwnRecords, openLinkFree } from '../volume/kind/source-path.ts'
import type { CloneOrder, ContainerOrder } from './order.ts'

/** What a container would have had mounted, held open. */
export interface OpenedMount {
  handle: Handle
  /** Its real path. */
  path: string
  /** The group on disk: of a part of a volume that of its root. */
  group: number
  /** The same, looked at again. */
  groupNow(): number
  /** The volume's identity, or the part's. */
  identity: string
}

type Where = Pick<ContainerOrder, 'kubeletDir' | 'pod'>

/**
 * Opens the source of a mount without following a link: below kubelet's directory only what is this pod's.
 * @throws {Refusal} with what it is about still to be said
 */
export function openMountSource(session: Session, where: Where, { source }: CloneOrder): OpenedMount {
  const { host, config } = session
  const { inodes } = host
  return orClosed(inodes, openSource(host, where, source), (handle) => {
    const path = inodes.pathOf(handle)
    if (holdsOwnRecords(path, config)) {
      throw new Refusal(`is of ${quoted(path)}, which holds modekeep's own records: name another directory`)
    }
    const groupNow = () => groupOf(host, where, source, handle)
    return { handle, path, group: groupNow(), groupNow, identity: identityOf(session, handle) }
  })
}

function identityOf(session: Session, handle: Handle): string {
  return volumeIdentity(session, handle, session.host.inodes.stat(handle))
}

function openSource(host: Host, where: Where, source: string): Handle {
  const inPod = partsInPod(where, source)
  return inPod === undefined
    ? openLinkFree(host, source, { what: 'its source', remedy: 'create it' })
    : openParts(host, where.kubeletDir, inPod)
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

const SUB_PATH = /^pods\/[^/]+\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/

/** Of a subPath the volume it is a part of tells the group, as that of a directory in it may be another. */
function groupOf(host: Host, where: Where, source: string, handle: Handle): number {
  const { inodes } = host
  const own = inodes.stat(handle)
  const [, volume] = SUB_PATH.exec(source.slice(where.kubeletDir.length + 1)) ?? []
  if (volume === undefined || !source.startsWith(`${where.kubeletDir}/`)) return own.gid
  for (const parts of rootsOf(host, where, volume)) {
    try {
      const root = openParts(host, where.kubeletDir, parts)
      using _ = closing(inodes, root)
      const stat = inodes.stat(root)
      if (stat.device === own.device) return stat.gid
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  }
  return own.gid
}

/** Where kubelet has mounted a volume of this name: a CSI driver's one directory deeper. */
function rootsOf({ files }: Host, { kubeletDir, pod }: Where, volume: string): string[][] {
  const volumes = ['pods', pod.uid, 'volumes']
  return files.list([kubeletDir, ...volumes].join('/')).map((plugin) => {
    const root = [...volumes, plugin, volume]
    return plugin === 'kubernetes.io~csi' ? [...root, 'mount'] : root
  })
}
