import type { NodeConfig } from '../../config/defaults.ts'
import { DEFAULT_ALLOWED_FS_TYPES } from '../../config/rule.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { explainRootOnlyDevice, FUSE_DEVICE_PATH } from '../../frontends/device-plugin/decide.ts'
import { isDevicePluginSocketName } from '../../frontends/device-plugin/sockets.ts'
import type { Host } from '../../kernel/host.ts'
import type { KernelFeature, KernelFeatureName, NodeDiagnosis } from '../../kernel/linux/diagnosis.ts'
import type { SelfTestResult } from '../../kernel/linux/self-test.ts'
import { listReadableMountRecords } from '../../state/mount-record.ts'
import {
  explainInactivePlugin,
  findRunningPlugin,
  NRI_SOCKET_PATH,
  type NriPluginRecord,
  nriPluginRecord,
} from '../../state/process-records.ts'
import type { Store } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'
import { findContainerProblems, findUnenforcedMountOptions } from '../node-state/containers.ts'
import { findKubelets } from '../node-state/kubelets.ts'
import { type CheckResult, createFaultResult, createOkResult, createWarningResult } from './findings.ts'
import { checkPathWriters, statPath } from './paths.ts'

/** The first kernel release of each feature, and the consequence of its absence: a fault if it `isNeeded`. */
const KERNEL_FEATURES: Readonly<Record<KernelFeatureName, { since: string; without: string; isNeeded?: true }>> = {
  open_tree: { since: '5.2', without: 'no volume can be mounted', isNeeded: true },
  fsopen: { since: '5.2', without: 'no volume but bind can be mounted', isNeeded: true },
  mount_setattr: { since: '5.12', without: 'no volume can be mounted', isNeeded: true },
  'statx mount ids': { since: '5.8', without: 'no volume can be mounted', isNeeded: true },
  openat2: { since: '5.6', without: 'paths are resolved component by component: slower' },
  'user namespace': { since: '3.8', without: 'ownership idmap is refused, and auto walks' },
  'idmapped tmpfs': { since: '6.3', without: 'ownership idmap of a tmpfs is refused' },
  MOVE_MOUNT_BENEATH: { since: '6.5', without: 'a replaced mount is missing for a moment' },
  fchmodat2: { since: '6.6', without: 'modes are changed through /proc: slower' },
  'unique mount ids': { since: '6.8', without: 'a mount id may be reused: mounts are told apart by inode only' },
  FS_IOC_GETFSUUID: {
    since: '6.9',
    without:
      'the UUID of ext4, xfs and btrfs is read by their own ioctls, that of f2fs from its disk; others are named by f_fsid',
  },
  listxattrat: { since: '6.13', without: 'extended attributes are listed through /proc: slower' },
}

/** @param release of the running kernel, from uname(2): 6.18.1-2-amd64 */
export function* checkKernel(features: readonly KernelFeature[], release: string): Generator<CheckResult> {
  const works = features.filter((feature) => feature.works).map(({ name }) => name)
  if (works.length > 0) yield createOkResult(`tried and working: ${works.join(', ')}`)
  for (const { name, detail, errno } of features.filter((feature) => !feature.works)) {
    const { since, without, isNeeded } = KERNEL_FEATURES[name]
    const text = `${name} does not work (${detail}): ${without}`
    // A seccomp filter may reject a call with ENOSYS, like a kernel that lacks it.
    const isFiltered =
      errno === 'EPERM' || errno === 'EACCES' || (errno === 'ENOSYS' && isReleaseAtLeast(release, since))
    const remedy = isFiltered
      ? 'run it as root on the node itself, not in a container with a filter of system calls'
      : name === 'user namespace'
        ? 'raise the sysctl user.max_user_namespaces'
        : `use Linux ${since} or newer`
    yield isNeeded ? createFaultResult(text, remedy) : createWarningResult(text, remedy)
  }
}

function isReleaseAtLeast(release: string, since: string): boolean {
  const [major = 0, minor = 0] = release.split('.').map((part) => Number.parseInt(part, 10))
  const [from = 0, point = 0] = since.split('.').map((part) => Number.parseInt(part, 10))
  return major > from || (major === from && minor >= point)
}

/** Compares modekeep's system calls with Node's. On a difference modekeep must not change files of this node. */
export function* checkSystemCalls(tests: readonly SelfTestResult[]): Generator<CheckResult> {
  const agreed = tests.filter(({ difference }) => difference === '').map(({ name }) => name)
  if (agreed.length > 0) yield createOkResult(`they work as they should: ${agreed.join(', ')}`)
  for (const { name, difference } of tests) {
    if (difference !== '') yield createFaultResult(`${name}: ${difference}`, 'use no walk on this node, and report it')
  }
}

/** Lists the programs that a file system type needs. The kernel mounts other types without a program. */
function listHelperPrograms(fsType: string): string[] {
  if (fsType === 'nfs' || fsType === 'nfs4' || fsType === 'cifs') return [`mount.${fsType}`]
  return fsType.startsWith('fuse.') ? [fsType.slice('fuse.'.length), 'fusermount3'] : []
}

/** Checks the helper programs of the types that the configuration allows. */
export function* checkHelperPrograms({ findProgram }: NodeDiagnosis, { allow }: NodeConfig): Generator<CheckResult> {
  const fsTypes = new Set(allow.flatMap((rule) => rule.fsTypes ?? DEFAULT_ALLOWED_FS_TYPES))
  const programs = new Set([...fsTypes].flatMap(listHelperPrograms))
  if (programs.size === 0)
    yield createOkResult(`no helper program is needed for ${[...fsTypes].join(', ') || 'no volume'}`)
  for (const program of programs) {
    try {
      yield createOkResult(`${program} is ${findProgram(program)}`)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      for (const { reason, remedy = 'install it' } of error.faults) {
        yield createFaultResult(reason, `${remedy}, or take its type out of the fsTypes of the rules (allow)`)
      }
    }
  }
}

/** @param executable this program's own file, compared with the installed one; undefined if it runs from its sources */
export function* checkKubelets(
  host: Host,
  diagnosis: NodeDiagnosis,
  executable: string | undefined,
): Generator<CheckResult> {
  const found = findKubelets(host.files)
  if (found.length === 0)
    yield createWarningResult('no kubelet runs here', 'start kubelet, or run doctor where its processes are visible')
  for (const { pid, kind, directory, why } of found) {
    const label = `${kind} (process ${pid})`
    if (directory === undefined) {
      yield createFaultResult(`${label}: ${why}`, 'call this as root, where that file can be read')
      continue
    }
    const at = `${label} uses the plugin directory ${directory} (${why})`
    const install = `./install.sh --plugin-dir ${directory}`
    if (statPath(host, directory) === undefined) yield createFaultResult(`${at}, which does not exist`, install)
    else
      yield* [
        createOkResult(at),
        ...checkInstalledDriver(host, diagnosis, `${directory}/modekeep~fs/fs`, install, executable),
      ]
  }
}

function checkInstalledDriver(
  host: Host,
  { isSameFile }: NodeDiagnosis,
  driver: string,
  install: string,
  executable?: string,
): CheckResult[] {
  const stat = statPath(host, driver)
  if (stat === undefined) return [createFaultResult(`${driver} is missing: kubelet does not know modekeep/fs`, install)]
  if ((stat.mode & 0o111) === 0) return [createFaultResult(`${driver} is not executable`, install)]
  const faults = checkPathWriters(host, 'the driver', driver)
  if (faults.length > 0) return faults
  if (executable === undefined) return [createOkResult(`${driver} is there`)]
  return isSameFile(driver, executable)
    ? [createOkResult(`${driver} is this version`)]
    : [createWarningResult(`${driver} is another version than ${executable}`, `${install}, or call ${driver} doctor`)]
}

// This directory does not depend on kubelet's --root-dir.
const DEVICE_PLUGIN_DIRECTORY = '/var/lib/kubelet/device-plugins'

/** Checks /dev/fuse if modekeep's device plugin has run here. A FUSE volume's own daemon runs on the node as root. */
export function* checkFuseDevice(host: Pick<Host, 'files' | 'inodes'>): Generator<CheckResult> {
  if (!host.files.list(DEVICE_PLUGIN_DIRECTORY).some(isDevicePluginSocketName)) return
  const device = statPath(host, FUSE_DEVICE_PATH)
  // The plugin itself reports a missing device to kubelet. A container sees the device only if it was given it.
  if (device === undefined) return
  const text = explainRootOnlyDevice(FUSE_DEVICE_PATH, device.mode)
  const remedy = `chmod 0666 ${FUSE_DEVICE_PATH}, and a udev rule or a line for systemd-tmpfiles that keeps it so (docs/fuse-in-pods.md)`
  yield text === undefined
    ? createOkResult(`every pod that is given ${FUSE_DEVICE_PATH} can open it`)
    : createWarningResult(text, remedy)
}

const ENABLE_NRI_REMEDY =
  'enable NRI in its configuration and restart it: containerd before 2.0 has [plugins."io.containerd.nri.v1.nri"] with disable = true, ' +
  'CRI-O enable_nri in [crio.nri] (docs/any-volume.md)'

type SocketDiagnosis = Pick<NodeDiagnosis, 'isListening'>

/** Checks the runtime's NRI socket, modekeep's plugin, and containers without their requested group. */
export function* checkContainerRuntime(store: Store, diagnosis: SocketDiagnosis): Generator<CheckResult> {
  const { record, problem } = nriPluginRecord.find(store, undefined)
  if (problem !== undefined)
    yield createWarningResult(problem.message, 'start "modekeep nri" again, which writes it anew')
  yield checkNriPlugin(store, record, diagnosis)
  const lacking = findContainerProblems(store).filter(({ state }) => state === 'without')
  const [first] = lacking
  if (first === undefined) return
  const such = `${quoteValue(first.volume)} of pod ${first.pod}`
  const text = `volumes that containers asked a group for and have without it: ${lacking.length}, such as ${such}`
  yield createWarningResult(text, `modekeep status says why of each; ${first.remedy}`)
}

function checkNriPlugin(
  store: Store,
  record: NriPluginRecord | undefined,
  { isListening }: SocketDiagnosis,
): CheckResult {
  const plugin = findRunningPlugin(store)
  if (plugin?.isRegistered) {
    return createOkResult(`the container runtime (${formatRuntimeVersion(plugin)}) asks "modekeep nri"`)
  }
  const socket = plugin?.socket ?? record?.socket ?? NRI_SOCKET_PATH
  const isThere = store.host.files.stat(socket) !== undefined
  if (plugin !== undefined) {
    if (!isThere)
      return createFaultResult(`the container runtime has no NRI socket at ${quoteValue(socket)}`, ENABLE_NRI_REMEDY)
    return createFaultResult(explainInactivePlugin(plugin) ?? '', `see why in the runtime's log; ${ENABLE_NRI_REMEDY}`)
  }
  if (record !== undefined) {
    const since = new Date(record.since).toISOString()
    const text = `"modekeep nri" was at work on this node (${since}) and is not any more: containers are created without the group that they ask for`
    return createFaultResult(text, 'start it; modekeep status has the containers')
  }
  const none = 'no "modekeep nri" runs, which only pods need that ask for a group of other drivers\' volumes'
  if (!isThere) return createOkResult(`the container runtime has no NRI socket at ${quoteValue(socket)}, and ${none}`)
  const state = isListening(socket)
    ? `the container runtime asks plugins (NRI, ${quoteValue(socket)})`
    : `no process listens at the NRI socket ${quoteValue(socket)}: the runtime has ended, or NRI is off`
  return createOkResult(`${state}; ${none}`)
}

function formatRuntimeVersion({ runtime, nri }: NriPluginRecord): string {
  return nri === undefined ? runtime : `${runtime}, NRI ${nri}`
}

const PROMISED_OPTIONS_TEXT = 'nosuid, nodev and noexec of the volumes'

/** Checks whether containers keep the mount options of their volumes, by the container runtime and its version. */
export async function* checkContainerMountOptions(session: Session): AsyncGenerator<CheckResult> {
  const plugin = findRunningPlugin(session)
  if (plugin?.isRegistered) {
    yield createOkResult(
      `${PROMISED_OPTIONS_TEXT} hold in containers: "modekeep nri" gives them to ${plugin.runtime}, whatever runc it has`,
    )
    return
  }
  const runtime = (await readContainerRuntime(session)) ?? 'the container runtime (its version could not be read)'
  const text =
    `${runtime} clears ${PROMISED_OPTIONS_TEXT} in containers with runc 1.2 or newer, and with an older runc for readOnly ` +
    'volumeMounts; pods with "hostUsers: false" keep them'
  const concerned = listReadableMountRecords(session).filter(
    (record) => record.ended === undefined && findUnenforcedMountOptions(session, record, false).length > 0,
  )
  if (concerned.length === 0) yield createOkResult(`${text}; no mount on this node depends on it`)
  else
    yield createWarningResult(
      `${text}: ${concerned.length} mounts depend on it`,
      'start "modekeep nri" (docs/mounts.md)',
    )
}

/** Queries the runtime if one of its sockets exists. gRPC is loaded only in that case. */
export async function readContainerRuntime({ host }: Session): Promise<string | undefined> {
  const { RUNTIME_SOCKET_PATHS, readRuntimeVersion } = await import('../../frontends/nri/cri.ts')
  for (const socket of RUNTIME_SOCKET_PATHS.filter((path) => host.files.has(path))) {
    const version = await readRuntimeVersion(socket)
    if (version !== undefined) return version
  }
  return undefined
}
