import type { Host } from '../host/host.ts'
import {
  hasRemoteBelow,
  isLocalPath,
  isRemoteType,
  isSilentPath,
  type LookupCaller,
  silentPaths,
  unanswered,
} from '../mount-table/silence.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { getSourcePath } from '../request/source.ts'
import type { Session } from '../store/session.ts'

type Asked = Pick<MountRequest, 'source' | 'subPath'>

export type IsSilent = (asked: { request: Asked }) => Promise<boolean>

/** Whether a source of the node is asked for in vain: a server or a daemon on the way to it does not respond. */
export function silentSources(session: LookupCaller): IsSilent {
  const isSilentAt = silentPaths(session)
  return async ({ request }) => {
    const path = pathIn(request)
    return path !== undefined && (await isSilentAt(path))
  }
}

/** The same of one source: the mount table is read only where its path does not tell. */
export function silentSource(session: LookupCaller): IsSilent {
  return async ({ request }) => {
    const path = pathIn(request)
    return path !== undefined && (await isSilentPath(session, path))
  }
}

/**
 * Before a source is opened.
 * @throws {Refusal} where its server or its daemon does not respond
 */
export async function refuseSilent(session: LookupCaller, request: Asked): Promise<void> {
  const path = pathIn(request)
  const within = request.subPath === undefined ? undefined : getSourcePath(request.source)
  if (path === undefined || !(await isSilentPath(session, path, within))) return
  throw new Refusal(unanswered(`source ${quoted(path)}`, 'it is mounted'))
}

/** Whether a request's source, if it has a path, lies on this node's own file systems. */
export function isLocalSource(host: Host, request: Asked): boolean {
  const path = pathIn(request)
  return path === undefined || isLocalPath(host, path)
}

/** Whether a mount, or a look at its volume, asks somebody who may never answer, and another process must do it. */
export function mayWait(session: Session, request: Asked & Pick<MountRequest, 'fsType'>): boolean {
  return !session.mayHang && (isRemoteType(request.fsType) || asksForSource(session, request))
}

/** The same of a look at what is to be mounted, links below the source included. */
export function asksForSource({ host, mayHang }: Session, request: Asked): boolean {
  if (mayHang) return false
  if (!isLocalSource(host, request)) return true
  const within = request.subPath === undefined ? undefined : getSourcePath(request.source)
  return within !== undefined && hasRemoteBelow(host, within)
}

function pathIn({ source, subPath }: Asked): string | undefined {
  const path = getSourcePath(source)
  return path === undefined || subPath === undefined ? path : `${path}/${subPath}`
}
