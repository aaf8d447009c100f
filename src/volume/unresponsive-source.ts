import type { MountRequest } from '../config/mount-request.ts'
import { getSourcePath } from '../config/source.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import type { Host } from '../kernel/host.ts'
import {
  createUnresponsiveCheck,
  createUnresponsiveFault,
  hasRemoteMountBelow,
  isLocalPath,
  isRemoteFsType,
  isUnresponsivePath,
  type PathLookupCaller,
} from '../kernel/mount-table/responsiveness.ts'
import type { Session } from '../state/session.ts'

type SourceRequest = Pick<MountRequest, 'source' | 'subPath'>

export type UnresponsiveSourceCheck = (record: { request: SourceRequest }) => Promise<boolean>

/** Creates a check whether a server or a daemon on the path to a source does not respond. */
export const createUnresponsiveSourceCheck = (session: PathLookupCaller): UnresponsiveSourceCheck =>
  createRequestPathCheck(createUnresponsiveCheck(session))

/**
 * Like `createUnresponsiveSourceCheck`, for one source. Reads the mount table only if the path is not on a local file
 * system.
 */
export const createOneUnresponsiveSourceCheck = (session: PathLookupCaller): UnresponsiveSourceCheck =>
  createRequestPathCheck((path) => isUnresponsivePath(session, path))

function createRequestPathCheck(isUnresponsiveAt: (path: string) => Promise<boolean>): UnresponsiveSourceCheck {
  return async ({ request }) => {
    const path = resolveRequestPath(request)
    return path !== undefined && (await isUnresponsiveAt(path))
  }
}

/**
 * Must be called before a source is opened.
 * @throws {Refusal} if its server or its daemon does not respond
 */
export async function assertSourceResponsive(session: PathLookupCaller, request: SourceRequest): Promise<void> {
  const path = resolveRequestPath(request)
  const within = request.subPath === undefined ? undefined : getSourcePath(request.source)
  if (path === undefined || !(await isUnresponsivePath(session, path, within))) return
  throw new Refusal(createUnresponsiveFault(`source ${quoteValue(path)}`, 'it is mounted'))
}

/** Whether a request's source, if it has a path, lies on this node's own file systems. */
export function isLocalSource(host: Host, request: SourceRequest): boolean {
  const path = resolveRequestPath(request)
  return path === undefined || isLocalPath(host, path)
}

/** Whether a mount, or a check of its volume, needs a server or daemon that may never respond, so it must be isolated. */
export function needsIsolatedMount(session: Session, request: SourceRequest & Pick<MountRequest, 'fsType'>): boolean {
  return !session.mayHang && (isRemoteFsType(request.fsType) || isSourceCheckRemote(session, request))
}

/** Whether a check of the source, including links below it, needs a server or a daemon. */
export function isSourceCheckRemote({ host, mayHang }: Session, request: SourceRequest): boolean {
  if (mayHang) return false
  if (!isLocalSource(host, request)) return true
  const within = request.subPath === undefined ? undefined : getSourcePath(request.source)
  return within !== undefined && hasRemoteMountBelow(host, within)
}

function resolveRequestPath({ source, subPath }: SourceRequest): string | undefined {
  const path = getSourcePath(source)
  return path === undefined || subPath === undefined ? path : `${path}/${subPath}`
}
