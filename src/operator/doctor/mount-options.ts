import { listMountRecords } from '../../store/mount-record.ts'
import { findRunningPlugin } from '../../store/server-records.ts'
import type { Session } from '../../store/session.ts'
import { findUnenforcedOptions } from '../actions/mount-options.ts'
import { type CheckResult, ok, warning } from './findings.ts'

const PROMISE = 'nosuid, nodev and noexec of the volumes'

/** Checks whether containers keep the mount options of their volumes, by the container runtime and its version. */
export async function* checkMountOptions(session: Session): AsyncGenerator<CheckResult> {
  const plugin = findRunningPlugin(session)
  if (plugin?.isRegistered) {
    yield ok(`${PROMISE} hold in containers: "modekeep nri" gives them to ${plugin.runtime}, whatever runc it has`)
    return
  }
  const runtime = (await readRuntime(session)) ?? 'the container runtime (its version could not be read)'
  const text =
    `${runtime} clears ${PROMISE} in containers with runc 1.2 or newer, and with an older runc for readOnly ` +
    'volumeMounts; pods with "hostUsers: false" keep them'
  const concerned = listMountRecords(session).filter(
    (record) => record.ended === undefined && findUnenforcedOptions(session, record, false).length > 0,
  )
  if (concerned.length === 0) yield ok(`${text}; no mount on this node depends on it`)
  else yield warning(`${text}: ${concerned.length} mounts depend on it`, 'start "modekeep nri" (docs/mounts.md)')
}

/** Queries the runtime if one of its sockets exists. gRPC is loaded only in that case. */
async function readRuntime({ host }: Session): Promise<string | undefined> {
  const { RUNTIME_SOCKETS, readRuntimeVersion } = await import('../../nri/runtime-version.ts')
  for (const socket of RUNTIME_SOCKETS.filter((path) => host.files.has(path))) {
    const version = await readRuntimeVersion(socket)
    if (version !== undefined) return version
  }
  return undefined
}
