import { formatError } from '../errors/refusal.ts'
import { FILE_TYPE_MASK, type Host, SOCKET_TYPE } from '../kernel/host.ts'
import { parseVolumePod } from '../kernel/mount-table/kubelet-volume.ts'
import { tolerateSystemErrors } from '../kernel/system-error.ts'
import type { ProtobufMessages } from '../rpc/protobuf.ts'
import type { MountRecord } from '../state/mount-record.ts'

const KUBELET_REQUEST_TIMEOUT_MS = 2000

interface KubeletOptions {
  /** Lists kubelet's pods. @throws if no answer arrives in time */
  readonly list: (socket: string, withinMs: number) => Promise<readonly string[]>
  /** Time between two requests for kubelet's pods: after its start kubelet adds its pods one by one. */
  readonly intervalMs: number
  /** Kubelet's directory of pod logs. */
  readonly logs: string
  /** Time for which an answer is used for other pods too. */
  readonly lifetimeMs: number
}

export type PodFate =
  | { is: 'living' }
  | { is: 'gone' | 'doubtful'; reason: string }
  /** Kubelet reported the pod as deleted once, and is requested again after `wait` milliseconds. */
  | { is: 'going'; wait: number; reason: string }

const LIVING_POD_FATE: PodFate = { is: 'living' }

const POD_GONE_REASON =
  'its pod is gone without an unmount: this kubelet was started after the pod and does not list it, has removed its logs, and no process of it runs'

/** Names the remedy for a pod whose state cannot be determined. */
function createDoubtfulPodFate(why: string): PodFate {
  const reason =
    `its pod may be gone, as no process and no log of it is left, but ${why}: it is kept; ` +
    'restart kubelet with the driver there, or call "modekeep unmount" with its directory once you know that the pod is gone'
  return { is: 'doubtful', reason }
}

/** Fields that name a pod in kubelet's list (kubernetes staging/src/k8s.io/kubelet/pkg/apis/podresources). */
export const POD_RESOURCES_MESSAGES = {
  ListPodResourcesRequest: {},
  ListPodResourcesResponse: { podResources: [1, 'PodResources', 'repeated'] },
  PodResources: { name: [1, 'string'], namespace: [2, 'string'] },
} as const satisfies ProtobufMessages

/** The versions since Kubernetes 1.20, and before. They differ only in fields that are not read here. */
const POD_RESOURCES_VERSIONS = ['v1', 'v1alpha1']
/** Status code of gRPC. */
const GRPC_UNIMPLEMENTED = 12

/**
 * Lists kubelet's pods as `namespace/name`, by its pod-resources socket.
 * @throws {grpc.ServiceError} if no readable answer arrives in time
 */
export async function listNodePods(socket: string, withinMs: number): Promise<string[]> {
  // gRPC takes longer to load than the rest of a heal, so it is loaded only if a pod may be deleted.
  const [{ callGrpcMethodOnce }, { createProtobufPackage }] = await Promise.all([
    import('../rpc/client.ts'),
    import('../rpc/protobuf.ts'),
  ])
  let unknown: unknown
  for (const version of POD_RESOURCES_VERSIONS) {
    const { method } = createProtobufPackage(version, POD_RESOURCES_MESSAGES)
    const List = method('PodResourcesLister/List', 'ListPodResourcesRequest', 'ListPodResourcesResponse')
    try {
      const { podResources } = await callGrpcMethodOnce(socket, List, {}, withinMs)
      return podResources.map(({ namespace, name }) => `${namespace}/${name}`)
    } catch (error) {
      if ((error as { code?: unknown }).code !== GRPC_UNIMPLEMENTED) throw error
      unknown = error
    }
  }
  throw unknown
}

// `logs` is kubelet's own default (kubernetes pkg/kubelet/kuberuntime, podLogsRootDirectory).
const KUBELET_OPTIONS: KubeletOptions = { list: listNodePods, intervalMs: 5000, logs: '/var/log/pods', lifetimeMs: 500 }

/** Requests the list of pods from kubelet. Each watch has one instance, which keeps earlier answers. */
export class KubeletPods {
  readonly #options: KubeletOptions
  /** Maps mount directories to the time at which kubelet first did not list their pod, and to that kubelet's identity. */
  readonly #first = new Map<string, { at: number; kubelet: string }>()
  readonly #answers = new Map<string, { at: number; answer: Promise<KubeletPodSnapshot> }>()

  constructor(options: Partial<KubeletOptions> = {}) {
    this.#options = { ...KUBELET_OPTIONS, ...options }
  }

  /** Finds whether the pod of a mount was deleted. Stats only a few files if no sign of that exists. */
  async findFate(host: Host, record: Pick<MountRecord, 'directory' | 'pod'>): Promise<PodFate> {
    const { directory } = record
    const fate = await this.#decideFate(host, record)
    if (fate.is === 'living' || fate.is === 'doubtful') this.forget(directory)
    return fate
  }

  /** Removes the stored answer for a mount directory. */
  forget(directory: string): void {
    this.#first.delete(directory)
  }

  async #decideFate(host: Host, { directory, pod }: Pick<MountRecord, 'directory' | 'pod'>): Promise<PodFate> {
    const place = parseVolumePod(directory)
    if (place === undefined) return LIVING_POD_FATE
    const { root, uid } = place
    const socket = `${root}/pod-resources/kubelet.sock`
    const trace: PodTrace = {
      uid,
      pod,
      born: host.files.born(`${root}/pods/${uid}`),
      kubeletSince: host.files.born(socket),
      hasLogs: pod !== undefined && host.files.has(`${this.#options.logs}/${pod.replace('/', '_')}_${uid}`),
    }
    if (!mayPodBeGone(trace)) return LIVING_POD_FATE
    const doubt = (why: string) => (host.runningPods().has(uid) ? LIVING_POD_FATE : createDoubtfulPodFate(why))
    const fault = findKubeletSocketFault(host, socket)
    if (fault !== undefined) return doubt(fault)
    let answer: KubeletPodSnapshot
    try {
      answer = await this.#requestPods(host, socket)
    } catch (error) {
      return doubt(`kubelet does not say which pods it has (${socket}: ${formatError(error)})`)
    }
    const fate = decidePodFate(trace, answer)
    if (fate === 'living') return LIVING_POD_FATE
    if (fate !== 'gone') return createDoubtfulPodFate(fate.unknownReason)
    // A restarted kubelet uses the same path, and begins with an empty list.
    const kubelet = JSON.stringify([trace.kubeletSince, host.files.stat(socket)?.ino])
    const first = this.#first.get(directory)
    const at = first?.kubelet === kubelet ? first.at : performance.now()
    if (first?.kubelet !== kubelet) this.#first.set(directory, { at, kubelet })
    const wait = Math.ceil(at + this.#options.intervalMs - performance.now())
    return wait > 0 ? { is: 'going', wait, reason: POD_GONE_REASON } : { is: 'gone', reason: POD_GONE_REASON }
  }

  #requestPods(host: Host, socket: string): Promise<KubeletPodSnapshot> {
    const last = this.#answers.get(socket)
    if (last !== undefined && performance.now() - last.at < this.#options.lifetimeMs) return last.answer
    const answer = this.#options.list(socket, KUBELET_REQUEST_TIMEOUT_MS).then((pods) => ({
      pods: new Set(pods),
      logs: this.#listLogs(host),
      running: host.runningPods(),
    }))
    this.#answers.set(socket, { at: performance.now(), answer })
    return answer
  }

  #listLogs({ files }: Host): PodLogDirectory[] {
    const names = tolerateSystemErrors(() => files.list(this.#options.logs)) ?? []
    return names.flatMap((name) => {
      // Neither part has an underscore.
      const [namespace, pod, uid, more] = name.split('_')
      const born = files.born(`${this.#options.logs}/${name}`)
      if (uid === undefined || more !== undefined || born === undefined) return []
      return [{ pod: `${namespace}/${pod}`, uid, born }]
    })
  }
}

const WRITABLE_BY_OTHERS_MODE = 0o022

/** Returns the reason why a user other than root could answer for kubelet. */
function findKubeletSocketFault({ files }: Host, socket: string): string | undefined {
  for (const path of [socket, socket.slice(0, socket.lastIndexOf('/'))]) {
    const stat = files.stat(path)
    if (stat === undefined) return `${path} cannot be seen`
    if (path === socket && (stat.mode & FILE_TYPE_MASK) !== SOCKET_TYPE) return `${path} is no socket`
    const isOwn = stat.uid === 0 || stat.uid === process.geteuid?.()
    // Write access to a socket permits requests only; write access to its directory permits a socket that answers.
    if (!isOwn || (path !== socket && (stat.mode & WRITABLE_BY_OTHERS_MODE) !== 0))
      return `others than root can write ${path}, so it is not believed`
  }
  return undefined
}

/** Traces of a mount's pod in the node's files. */
export interface PodTrace {
  uid: string
  /** `namespace/name`; undefined: kubelet told none. */
  pod: string | undefined
  /** When kubelet made the pod's directory, in milliseconds since 1970; undefined: there is none. */
  born: number | undefined
  /** When the kubelet that runs now began to listen; undefined: none is seen. */
  kubeletSince: number | undefined
  /** The pod has a directory of logs. */
  hasLogs: boolean
}

/** A pod's directory of logs: the pod as `namespace/name`, and the time when the directory was made. */
type PodLogDirectory = { pod: string; uid: string; born: number }

/** Kubelet's pods, and the logs and processes of pods at the same moment. */
export interface KubeletPodSnapshot {
  /** The pods that it has, `namespace/name`. */
  pods: ReadonlySet<string>
  logs: readonly PodLogDirectory[]
  /** The uids of the pods of which a process is seen. */
  running: ReadonlySet<string>
}

/**
 * Whether the pod may have been deleted without an unmount, so that kubelet's list is needed. Kubelet itself unmounts the
 * volumes of every pod that it has seen since its start. It inspects the mounts of earlier pods once, at its start, and
 * forgets those whose driver is not there (pkg/kubelet/volumemanager/reconciler).
 *
 * Kubelet creates a pod's log directory before its first container. It removes that only after it has received all its pods,
 * and this one is not among them (pkg/kubelet/kuberuntime/kuberuntime_gc.go, evictPodLogsDirectories).
 *
 * The pod's directory itself is no evidence. Kubelet keeps it while one volume is mounted (pkg/kubelet/kubelet_volumes.go,
 * cleanupOrphanedPodDirs), and a pod that waits for its first container has a directory with nothing else.
 */
export function mayPodBeGone({ uid, pod, born, kubeletSince, hasLogs }: PodTrace): boolean {
  // A static pod's uid is a hash, which is the same again when its file is restored.
  if (!isApiServerUid(uid) || pod === undefined || hasLogs) return false
  return born !== undefined && kubeletSince !== undefined && born < kubeletSince
}

/** Whether the API server chose the uid (pkg/kubelet/config/common.go). */
export function isApiServerUid(uid: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uid)
}

/**
 * Decides by kubelet's answer whether a pod was deleted. A kubelet that has just started, or does not reach the API server,
 * has few pods or none. It must therefore list a pod of the API server that also runs on this node.
 * @returns 'living', 'gone', or the reason why the state is unknown
 */
export function decidePodFate(
  trace: PodTrace,
  { pods, logs, running }: KubeletPodSnapshot,
): 'living' | 'gone' | { unknownReason: string } {
  const { uid, pod = '', born = 0 } = trace
  if (running.has(uid)) return 'living'
  const isKnown = ({ pod, uid }: PodLogDirectory) => pods.has(pod) && isApiServerUid(uid) && running.has(uid)
  if (!logs.some(isKnown)) {
    return {
      unknownReason: 'kubelet lists no running pod of the API server, so it may not know yet which pods there are',
    }
  }
  if (!pods.has(pod)) return 'gone'
  // A name belongs to one pod at a time, so a later pod of that name proves that this one was deleted.
  const isLater = (other: PodLogDirectory) =>
    other.pod === pod && other.uid !== uid && other.born > born && running.has(other.uid)
  return logs.some(isLater) ? 'gone' : { unknownReason: `kubelet lists a pod ${pod}` }
}
