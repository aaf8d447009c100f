import type { LogEvent } from '../../log/call-log.ts'
import { type ServePluginMethod, UnimplementedMethodError } from './connection.ts'
import type { ContainerEventHandler } from './container-lifecycle.ts'
import {
  type Container,
  type ContainerMount,
  codec,
  NRI_EVENT_MASK,
  NRI_EVENT_NUMBERS,
  type PodSandbox,
} from './protocol.ts'

/** Events of a connection, which must not throw. */
export interface PluginConnectionEvents {
  /** @param runtime its name and version @param nri undefined: the runtime does not report its version of NRI */
  onConfigured(runtime: string, nri: string | undefined): void
  /** The runtime has sent all its pods and containers. @param sandboxes ids of the pods' sandboxes */
  onSynchronized(sandboxes: ReadonlySet<string>): void
}

type PodOrContainerEvent = { pod?: PodSandbox | undefined; container?: Container | undefined }

/** Limit of the pods and containers that a runtime sends in parts. No node runs so many. */
const MAX_SYNCHRONIZED_OBJECTS = 100_000

const EMPTY_RESPONSE_BYTES = new Uint8Array()

const configureRequestCodec = codec('ConfigureRequest')
const configureResponseCodec = codec('ConfigureResponse')
const synchronizeRequestCodec = codec('SynchronizeRequest')
const synchronizeResponseCodec = codec('SynchronizeResponse')
const containerRequestCodec = codec('ContainerRequest')
const createContainerResponseCodec = codec('CreateContainerResponse')
const stateChangeEventCodec = codec('StateChangeEvent')

/** Creates the plugin's service for one connection. */
export function createNriPluginService(
  handler: ContainerEventHandler,
  log: LogEvent,
  { onConfigured, onSynchronized }: PluginConnectionEvents,
  disconnected: AbortSignal,
): ServePluginMethod {
  let pods: PodSandbox[] = []
  let containers: Container[] = []

  const dispatchEvent = (event: number, { pod, container }: PodOrContainerEvent) => {
    if (event === NRI_EVENT_NUMBERS.runPodSandbox && pod) handler.onSandboxStarted(pod)
    if (event === NRI_EVENT_NUMBERS.stopPodSandbox && pod) handler.onSandboxStopped(pod.id)
    if (event === NRI_EVENT_NUMBERS.postStartContainer && pod && container) handler.onStarted(pod, container)
    if ((event === NRI_EVENT_NUMBERS.stopContainer || event === NRI_EVENT_NUMBERS.removeContainer) && container)
      handler.onEnded(container.id)
    return EMPTY_RESPONSE_BYTES
  }
  const createEventMethod = (event: number) => (payload: Uint8Array) =>
    dispatchEvent(event, containerRequestCodec.decode(payload))

  const methods: Readonly<Record<string, (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>>> = {
    Configure(payload) {
      const { runtimeName, runtimeVersion, requestTimeout, nriVersion } = configureRequestCodec.decode(payload)
      const nri = nriVersion === '' ? undefined : nriVersion
      const requestTimeoutMs = requestTimeout > 0n ? Number(requestTimeout) : undefined
      log('info', 'configured', { runtime: runtimeName, version: runtimeVersion, nri, requestTimeoutMs })
      onConfigured(`${runtimeName} ${runtimeVersion}`, nri)
      return configureResponseCodec.encode({ events: NRI_EVENT_MASK })
    },

    Synchronize(payload) {
      const part = synchronizeRequestCodec.decode(payload)
      pods.push(...part.pods)
      containers.push(...part.containers)
      if (pods.length + containers.length > MAX_SYNCHRONIZED_OBJECTS)
        throw new Error(`more than ${MAX_SYNCHRONIZED_OBJECTS} pods and containers`)
      if (!part.more) {
        log('info', 'synchronized', { pods: pods.length, containers: containers.length })
        handler.synchronize(pods, containers)
        const sandboxes = new Set(pods.map(({ id }) => id))
        ;[pods, containers] = [[], []]
        onSynchronized(sandboxes)
      }
      return synchronizeResponseCodec.encode({ more: part.more })
    },

    CreateContainer(payload) {
      const { pod, container } = containerRequestCodec.decode(payload)
      if (pod === undefined || container === undefined) return EMPTY_RESPONSE_BYTES
      const answer = handler.create(pod, container, disconnected)
      return answer === undefined ? EMPTY_RESPONSE_BYTES : answer.then(encodeContainerAdjustment)
    },

    // NRI before 0.12 sends all events by StateChange, later versions by a method of their own.
    StateChange(payload) {
      const change = stateChangeEventCodec.decode(payload)
      return dispatchEvent(change.event, change)
    },
    RunPodSandbox: createEventMethod(NRI_EVENT_NUMBERS.runPodSandbox),
    StopPodSandbox: createEventMethod(NRI_EVENT_NUMBERS.stopPodSandbox),
    PostStartContainer: createEventMethod(NRI_EVENT_NUMBERS.postStartContainer),
    StopContainer: createEventMethod(NRI_EVENT_NUMBERS.stopContainer),
    RemoveContainer: createEventMethod(NRI_EVENT_NUMBERS.removeContainer),

    Shutdown() {
      log('info', 'shutdown')
      return EMPTY_RESPONSE_BYTES
    },
  }

  return (method, payload) => {
    const serveMethod = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (serveMethod === undefined) throw new UnimplementedMethodError(`the plugin has no method ${method}`)
    return serveMethod(payload)
  }
}

/** Encodes two entries for each mount: one with a dash, which removes the mount at the destination, and the new mount. */
function encodeContainerAdjustment(mounts: readonly ContainerMount[] | undefined): Uint8Array {
  if (mounts === undefined || mounts.length === 0) return EMPTY_RESPONSE_BYTES
  const entries = mounts.flatMap((mount) => [
    { destination: `-${mount.destination}`, type: '', source: '', options: [] },
    mount,
  ])
  return createContainerResponseCodec.encode({ adjust: { mounts: entries } })
}
