import { closing, type Host } from '../host/host.ts'
import { mountsFrom } from '../mount-table/tree-location.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { sourcePath } from '../request/source.ts'
import type { Session } from '../store/session.ts'

/** Milliseconds for a server, and for a daemon that is stopped: it may go on. One that runs has as long as a helper. */
export const PATIENCE = 5000

/** File systems that a server or a daemon tells of: whoever opens something there waits for it, maybe for ever. */
const REMOTE = /^(fuse(blk)?(\..*)?|nfs4?|cifs|smb3|ceph|9p|afs|lustre|gfs2?|ocfs2)$/

export type IsSilent = (asked: { request: Pick<MountRequest, 'source' | 'subPath'> }) => Promise<boolean>

/**
 * Whether a source of the node is asked for in vain: a server or a daemon on the way to it does not respond. Each is
 * asked once, by another process.
 */
export function silentSources({ host }: Pick<Session, 'host'>): IsSilent {
  const serversTo = remoteFileSystems(host)
  const asked = new Map<string, Promise<boolean>>()
  return async ({ request }) => {
    const path = pathIn(request)
    const servers = path === undefined ? '' : serversTo(path)
    if (path === undefined || servers === '') return false
    return asked.getOrInsertComputed(servers, () => isSilentAt(host, path, servers))
  }
}

/** Whether nobody but this node is asked for what a mount shows. @param path where it is */
export function isLocalMount(host: Host, mountId: number, path: string): boolean {
  const type = host.inodes.typeOfMount(mountId)
  return type === undefined ? localPaths(host)(path) : !REMOTE.test(type)
}

/** Whether nobody but this node is asked for what lies at a path. Reads the mount table once. */
export function localPaths(host: Host): (path: string) => boolean {
  const serversTo = remoteFileSystems(host)
  return (path) => serversTo(path) === ''
}

/**
 * Before a source is opened: whoever waits for a FUSE daemon that has taken a request cannot even be killed.
 * @throws {Refusal} where its server or its daemon does not respond
 */
export async function refuseSilent(
  { host }: Pick<Session, 'host'>,
  request: Pick<MountRequest, 'source' | 'subPath'>,
): Promise<void> {
  const path = pathIn(request)
  if (path === undefined || isKnownLocal(host, path) || !(await silentSources({ host })({ request }))) return
  throw new Refusal(
    `source ${quoted(path)} does not respond (the server or the daemon of its file system hangs): repair that on the node, then it is mounted`,
  )
}

/** Whether a request's source, if it has a path, lies on this node's own file systems. */
export function isLocalSource(host: Host, request: Pick<MountRequest, 'source' | 'subPath'>): boolean {
  const path = pathIn(request)
  return path === undefined || isKnownLocal(host, path) || localPaths(host)(path)
}

/** Saves the reading of the mount table, which may be long. */
function isKnownLocal({ inodes }: Host, path: string): boolean {
  const type = inodes.knownType(path)
  return type !== undefined && !REMOTE.test(type)
}

function pathIn({ source, subPath }: Pick<MountRequest, 'source' | 'subPath'>): string | undefined {
  const path = sourcePath(source)
  return path === undefined || subPath === undefined ? path : `${path}/${subPath}`
}

/** By path: the devices of the file systems on the way to it that others tell of; '' where there are none. */
function remoteFileSystems({ mounts }: Host): (path: string) => string {
  const mountsTo = mountsFrom(mounts.table())
  const remote = (path: string) => mountsTo(path).filter(({ fsType }) => REMOTE.test(fsType))
  return (path) =>
    remote(path)
      .map(({ device }) => device)
      .join(' ')
}

async function isSilentAt({ daemons, inodes }: Host, path: string, servers: string): Promise<boolean> {
  const root = inodes.openTrusted('/')
  using _ = closing(inodes, root)
  return !(await daemons.answers(root, Buffer.from(path.slice(1)), PATIENCE, `servers ${servers}`))
}
