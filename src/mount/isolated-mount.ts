import { quoted } from '../errors/refusal.ts'
import type { Handle } from '../host/host.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { formatSource } from '../request/source.ts'
import type { Session } from '../store/session.ts'
import { findKind } from '../volume/index.ts'
import { needsIsolation } from '../volume/unresponsive-source.ts'
import { runIsolated } from '../worker/isolated.ts'
import { type MountResult, mount } from './mount.ts'

/**
 * Calls `mount`, in an isolated process if a server or a daemon must respond: one that has responded may hang at the
 * next request.
 * @throws {Refusal} as `mount` does; other system errors keep only their message
 */
export function mountIsolated(session: Session, request: MountRequest): Promise<MountResult> {
  if (!needsIsolation(session, request)) return mount(session, request)
  const what = formatSource(request.source)
  return runIsolated(session, {
    work: 'mount',
    about: request,
    secrets: findKind(request.fsType)?.usesSecrets ? session.secrets : undefined,
    givenUp: (seconds, waiting) =>
      `${what === undefined ? `the server of this ${request.fsType}` : `source ${quoted(what)}`} does not respond any more, so the call was given up after ${seconds} s (the server or the daemon of its file system hangs): repair that on the node, and kubelet's next call goes on${waiting}`,
  })
}

/** Runs `mount` in the isolated process. */
export function runMountTask(session: Session, _: Handle, request: MountRequest): Promise<MountResult> {
  return mount(session, request)
}
