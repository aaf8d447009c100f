import { quoted } from '../../errors/refusal.ts'
import type { Diagnosis } from '../../host/linux/diagnosis.ts'
import { listMountRecords } from '../../store/mount-record.ts'
import {
  explainInactivePlugin,
  findRunningPlugin,
  NRI_SOCKET,
  type PluginRecord,
  pluginRecord,
} from '../../store/process-records.ts'
import type { Store } from '../../store/record-directories.ts'
import type { Session } from '../../store/session.ts'
import { findContainerProblems, findUnenforcedOptions } from '../node-state/containers.ts'
import { type CheckResult, fault, ok, warning } from './findings.ts'

const ENABLE_NRI_REMEDY =
  'enable NRI in its configuration and restart it: containerd before 2.0 has [plugins."io.containerd.nri.v1.nri"] with disable = true, ' +
  'CRI-O enable_nri in [crio.nri] (docs/any-volume.md)'

type ListenerCheck = Pick<Diagnosis, 'isListening'>

/** Checks the runtime's NRI socket, modekeep's plugin, and containers without their requested group. */
export function* checkRuntime(store: Store, diagnosis: ListenerCheck): Generator<CheckResult> {
  const { record, problem } = pluginRecord.find(store, undefined)
  if (problem !== undefined) yield warning(problem.message, 'start "modekeep nri" again, which writes it anew')
  yield checkPlugin(store, record, diagnosis)
  const lacking = findContainerProblems(store).filter(({ state }) => state === 'without')
  const [first] = lacking
  if (first === undefined) return
  const such = `${quoted(first.volume)} of pod ${first.pod}`
  const text = `volumes that containers asked a group for and have without it: ${lacking.length}, such as ${such}`
  yield warning(text, `modekeep status says why of each; ${first.remedy}`)
}

function checkPlugin(store: Store, record: PluginRecord | undefined, { isListening }: ListenerCheck): CheckResult {
  const plugin = findRunningPlugin(store)
  if (plugin?.isRegistered) {
    return ok(`the container runtime (${formatRuntimeVersion(plugin)}) asks "modekeep nri"`)
  }
  const socket = plugin?.socket ?? record?.socket ?? NRI_SOCKET
  const isThere = store.host.files.stat(socket) !== undefined
  if (plugin !== undefined) {
    if (!isThere) return fault(`the container runtime has no NRI socket at ${quoted(socket)}`, ENABLE_NRI_REMEDY)
    return fault(explainInactivePlugin(plugin) ?? '', `see why in the runtime's log; ${ENABLE_NRI_REMEDY}`)
  }
  if (record !== undefined) {
    const since = new Date(record.since).toISOString()
    const text = `"modekeep nri" was at work on this node (${since}) and is not any more: containers are created without the group that they ask for`
    return fault(text, 'start it; modekeep status has the containers')
  }
  const none = 'no "modekeep nri" runs, which only pods need that ask for a group of other drivers\' volumes'
  if (!isThere) return ok(`the container runtime has no NRI socket at ${quoted(socket)}, and ${none}`)
  return isListening(socket)
    ? ok(`the container runtime asks plugins (NRI, ${quoted(socket)}); ${none}`)
    : ok(`nobody is seen to listen at the NRI socket ${quoted(socket)}: the runtime has ended, or NRI is off; ${none}`)
}

function formatRuntimeVersion({ runtime, nri }: PluginRecord): string {
  return nri === undefined ? runtime : `${runtime}, NRI ${nri}`
}

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
  const { RUNTIME_SOCKETS, readRuntimeVersion } = await import('../../nri/cri.ts')
  for (const socket of RUNTIME_SOCKETS.filter((path) => host.files.has(path))) {
    const version = await readRuntimeVersion(socket)
    if (version !== undefined) return version
  }
  return undefined
}
