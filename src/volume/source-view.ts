import { isDirectory } from '../host/host.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { sourceText } from '../request/source.ts'
import type { Session } from '../store/session.ts'
import { textIdentity, volumeIdentity } from '../store/volume-record.ts'
import type { OpenedSource, VolumeKind } from './kind/kind.ts'

/** What the request's source, or its subPath in it, is now. */
export interface SourceView {
  /** The inode that a mount of it shows; undefined where only the mount knows. */
  root: { device: number; inode: bigint; group: number } | undefined
  /** Tells a source from another of the same name, where `root` does not; undefined where nothing can. */
  identity?: string
  /** Undefined where only the mount knows. */
  volume: string | undefined
  /** Its real path, or its text as it was written. */
  path: string
  isDirectory: boolean
}

/** What is known of a source before its mount is made. */
export function sourceView(
  { host }: Session,
  request: MountRequest,
  { root }: VolumeKind,
  source: OpenedSource | undefined,
): SourceView {
  if (source === undefined) {
    const volume = root === 'text' ? textIdentity(request) : undefined
    return { root: undefined, volume, path: sourceText(request.source) ?? '', isDirectory: true }
  }
  const { handle, stat, path } = source
  const { device, inode, gid: group } = stat
  // A disk's file system has a root of its own, but another disk under its name is another inode or device.
  const identity = `${device}:${inode}:${stat.born}`
  if (root !== 'source') return { root: undefined, identity, volume: undefined, path, isDirectory: true }
  const volume = volumeIdentity(host, handle, stat)
  return { root: { device, inode, group }, volume, path, isDirectory: isDirectory(stat) }
}
