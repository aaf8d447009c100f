import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { readTextFile } from '../read-file.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { WORKER_PROCESS_NAME } from '../worker-process.ts'
import { CALL_DATA_OFFSET, callData, createSystemCall, requireCallSuccess } from './kernel.ts'
import { deferDescriptorClose } from './open.ts'

export function listProcessIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** Fields of proc_pid_stat(5) of a running process. */
interface ProcessStat {
  /** One letter: R, S, D, T (stopped), … */
  state: string
  group: number
  session: number
  /** Start time in clock ticks after the boot. It distinguishes the process from a later one with the same pid. */
  start: string
}

/** Returns undefined for a process that has ended, even if its parent has not waited for it. */
export function readProcessStat(pid: number): ProcessStat | undefined {
  // The fields follow the name, which may contain parentheses.
  const fields = readProcText(pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  const [state = '', , group, session] = fields
  if (!/^[^ZX]$/.test(state)) return undefined
  return { state, group: Number(group), session: Number(session), start: fields[19] ?? '' }
}

/**
 * Parses proc_pid_status(5).
 * @param text of /proc/PID/status; '' for a process that has ended
 * @returns the real, effective, saved and file system user ids in this user namespace, and the effective capabilities
 * as bits
 */
export function parseProcessStatus(text: string): { userIds: number[]; capabilities: bigint } {
  const field = (name: string) => new RegExp(`^${name}:\\t(.*)$`, 'm').exec(text)?.[1]
  return {
    userIds: field('Uid')?.split('\t').map(Number) ?? [],
    capabilities: BigInt(`0x${field('CapEff') ?? '0'}`),
  }
}

type ProcFileName = 'stat' | 'status' | 'cmdline' | 'environ'

/** Arguments and variables each end with a NUL. Returns '' for a process that has ended, or is about to. */
export function readProcText(pid: number, file: ProcFileName): string {
  // Both are read from the process's memory, which may be mapped from a file of an unresponsive daemon.
  if ((file === 'cmdline' || file === 'environ') && !isInOwnMountNamespace(pid)) return ''
  return tolerateSystemErrors(() => readTextFile(`/proc/${pid}/${file}`)) ?? ''
}

/** All processes that modekeep starts are in this mount namespace, and processes of pods are not. */
function isInOwnMountNamespace(pid: number): boolean {
  return readMountNamespace(pid) === readMountNamespace('self')
}

export function readMountNamespace(pid: number | 'self'): string | undefined {
  return tolerateSystemErrors(() => readlinkSync(`/proc/${pid}/ns/mnt`))
}

const pidfdOpen = createSystemCall('pidfd_open')
const pidfdSendSignal = createSystemCall('pidfd_send_signal')

/**
 * Inspects a process through a pidfd, so all reads are of one process, and `kill` reaches no other process even if the
 * pid is reused.
 * @returns the result of `inspect`, or undefined if the process has ended
 */
export function withPidfd<T>(pid: number, inspect: (kill: () => void) => T): T | undefined {
  const handle = pidfdOpen(pid)
  if (handle < 0) return undefined
  using _ = deferDescriptorClose(handle)
  const result = inspect(() => void pidfdSendSignal(handle, constants.signals.SIGKILL))
  // Signal 0 only checks for existence. If the process was reaped, the reads may be of another process.
  return pidfdSendSignal(handle, 0) < 0 ? undefined : result
}

/** Checks whether all four user ids of a process are those of this one. Access to /proc/PID proves less. */
export function hasOwnUserIds(pid: number): boolean {
  const ownUid = process.geteuid?.()
  const { userIds } = parseProcessStatus(readProcText(pid, 'status'))
  return userIds.length > 0 && userIds.every((uid) => uid === ownUid)
}

// include/uapi/linux/auxvec.h: nonzero only in a program that was given rights that its caller lacks.
const AT_SECURE = 23n

export function hasProcessRaisedRights(pid: number): boolean {
  const auxiliary = tolerateSystemErrors(() => readFileSync(`/proc/${pid}/auxv`)) ?? Buffer.alloc(0)
  for (let offset = 0; offset + 16 <= auxiliary.length; offset += 16) {
    if (auxiliary.readBigUInt64LE(offset) === AT_SECURE) return auxiliary.readBigUInt64LE(offset + 8) !== 0n
  }
  return true
}

/** Signals the remaining processes of a helper's process group, which has its leader's id. */
export function signalProcessGroup(leader: number, signal: NodeJS.Signals): void {
  tolerateSystemErrors(() => process.kill(-leader, signal))
}

/**
 * Returns the uids of pods with a visible process. A process belongs to a pod by kubelet's cgroup of the pod, or by
 * mounts from kubelet's directory of the pod. Not every runtime and configuration uses such a cgroup.
 */
export function listRunningPodUids(): ReadonlySet<string> {
  const pods = new Set<string>()
  const namespaces = new Set<string>()
  for (const pid of listProcessIds()) {
    const read = (file: string) => tolerateSystemErrors(() => readFileSync(`/proc/${pid}/${file}`, 'utf8')) ?? ''
    const pod = parseCgroupPodUid(read('cgroup'))
    if (pod !== undefined) pods.add(pod)
    const namespace = readMountNamespace(pid)
    if (namespace === undefined || namespaces.has(namespace)) continue
    const table = read('mountinfo')
    // An ending process has no mount table, but others of its namespace may have one.
    if (table !== '') namespaces.add(namespace)
    for (const uid of parseMountPodUids(table)) pods.add(uid)
  }
  return pods
}

/** The node's own pid namespace: include/linux/proc_ns.h, PROC_PID_INIT_INO. */
const NODE_PID_NAMESPACE = 'pid:[4026531836]'

/**
 * Reads the cgroups of all processes. A runtime names a container's cgroup after it (runc's `cri-containerd-ID.scope`
 * or `/ID`, CRI-O's `crio-ID.scope`).
 * @returns a check for processes of a container; always true if not all of the node's processes are visible
 */
export function snapshotContainerProcesses(): (container: string) => boolean {
  if (tolerateSystemErrors(() => readlinkSync('/proc/self/ns/pid')) !== NODE_PID_NAMESPACE) return () => true
  const cgroups = new Set(
    listProcessIds().map((pid) => tolerateSystemErrors(() => readFileSync(`/proc/${pid}/cgroup`, 'utf8'))),
  )
  const text = [...cgroups].join('\n')
  return (container) => text.includes(container)
}

const POD_UID_PATTERN = /[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}/.source

/**
 * Returns the uid of a process's pod from its /proc/PID/cgroup. Kubelet names the pod's cgroup `pod<uid>`, with
 * underscores if systemd creates it (kubernetes pkg/kubelet/cm/pod_container_manager_linux.go).
 */
export function parseCgroupPodUid(text: string): string | undefined {
  const uid = new RegExp(`pod(${POD_UID_PATTERN})`).exec(text)?.[1]
  return uid?.replaceAll('_', '-')
}

/**
 * Returns the pods whose files a mount namespace has outside of kubelet's directory: /etc/hosts, termination logs and
 * volumes of containers (kubernetes pkg/kubelet/kubelet_pods.go, makeMounts).
 * @param table the namespace's /proc/PID/mountinfo
 */
export function parseMountPodUids(table: string): string[] {
  return table.split('\n').flatMap((row) => {
    const [, , , root = '', mountPoint = ''] = row.split(' ')
    const uid = new RegExp(`/pods/(${POD_UID_PATTERN})/`).exec(root)?.[1]
    return uid === undefined || mountPoint.includes(`/pods/${uid}/`) ? [] : [uid]
  })
}

const limitCore = createSystemCall('limit_core')

/**
 * Disables core dumps of all programs that this process starts later. The loader has disabled those of this process.
 * @throws {SystemError}
 */
export function forbidCoreDumps(): void {
  // fs/coredump.c: a program to which core_pattern pipes receives a core at any limit except 1.
  if (setCoreLimit(1n) < 0) {
    // The caller had set a hard limit of 0, and raising it needs CAP_SYS_RESOURCE.
    requireCallSuccess(setCoreLimit(0n), 'prlimit64', 'RLIMIT_CORE')
  }
}

/** @param bytes the soft and the hard limit of a struct rlimit */
function setCoreLimit(bytes: bigint): number {
  callData.writeBigUInt64LE(bytes, 0)
  callData.writeBigUInt64LE(bytes, 8)
  return limitCore(0, 0, CALL_DATA_OFFSET)
}

const dieWithParent = createSystemCall('die_with_parent')

/** Names this process as supervised: its supervisor may kill it while it waits in the kernel. */
export function markProcessSupervised(): void {
  process.title = WORKER_PROCESS_NAME
}

/** Has the kernel kill this isolated process when its parent ends: prctl(2), PR_SET_PDEATHSIG. */
export function endProcessWithParent(): void {
  markProcessSupervised()
  dieWithParent()
}
