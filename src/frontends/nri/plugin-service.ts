import type { LogEvent } from '../../log/call-log.ts'
import { type ServeMethod, Unimplemented } from './connection.ts'
import type { ContainerHandler } from './container-lifecycle.ts'
import { type Container, codec, EVENT, EVENT_MASK, type Mount, type PodSandbox } from './protocol.ts'

/** Events of a connection, which must not throw. */
export interface ConnectionEvents {
  /** @param runtime its name and version @param nri undefined: the runtime does not report its version of NRI */
  onConfigured(runtime: string, nri: string | undefined): void
  /** The runtime has sent all its pods and containers. @param sandboxes ids of the pods' sandboxes */
  onSynchronized(sandboxes: ReadonlySet<string>): void
}

type ContainerEvent = { pod?: PodSandbox | undefined; container?: Container | undefined }

/** Limit of the pods and containers that a runtime sends in parts. No node runs so many. */
const MAX_SYNCHRONIZED = 100_000

const EMPTY_RESPONSE = new Uint8Array()

const configureRequest = codec('ConfigureRequest')
const configureResponse = codec('ConfigureResponse')
const synchronizeRequest = codec('SynchronizeRequest')
const synchronizeResponse = codec('SynchronizeResponse')
const containerRequest = codec('ContainerRequest')
const createResponse = codec('CreateContainerResponse')
const stateChangeEvent = codec('StateChangeEvent')

/** Creates the plugin's service for one connection. */
export function createPluginService(
  handler: ContainerHandler,
  log: LogEvent,
  { onConfigured, onSynchronized }: ConnectionEvents,
  disconnected: AbortSignal,
): ServeMethod {
  let pods: PodSandbox[] = []
  let containers: Container[] = []

  const dispatchEvent = (event: number, { pod, container }: ContainerEvent) => {
    if (event === EVENT.runPodSandbox && pod) handler.onSandboxStarted(pod)
    if (event === EVENT.stopPodSandbox && pod) handler.onSandboxStopped(pod.id)
    if (event === EVENT.postStartContainer && pod && container) handler.onStarted(pod, container)
    if ((event === EVENT.stopContainer || event === EVENT.removeContainer) && container) handler.onEnded(container.id)
    return EMPTY_RESPONSE
  }
  const createEventMethod = (event: number) => (payload: Uint8Array) =>
    dispatchEvent(event, containerRequest.decode(payload))

  const methods: Readonly<Record<string, (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>>> = {
    Configure(payload) {
      const { runtimeName, runtimeVersion, requestTimeout, nriVersion } = configureRequest.decode(payload)
      const nri = nriVersion === '' ? undefined : nriVersion
      const requestTimeoutMs = requestTimeout > 0n ? Number(requestTimeout) : undefined
      log('info', 'configured', { runtime: runtimeName, version: runtimeVersion, nri, requestTimeoutMs })
      onConfigured(`${runtimeName} ${runtimeVersion}`, nri)
      return configureResponse.encode({ events: EVENT_MASK })
    },

    Synchronize(payload) {
      const part = synchronizeRequest.decode(payload)
      pods.push(...part.pods)
      containers.push(...part.containers)
      if (pods.length + containers.length > MAX_SYNCHRONIZED)
        throw new Error(`more than ${MAX_SYNCHRONIZED} pods and containers`)
      if (!part.more) {
        log('info', 'synchronized', { pods: pods.length, containers: containers.length })
        handler.synchronize(pods, containers)
        const sandboxes = new Set(pods.map(({ id }) => id))
        ;[pods, containers] = [[], []]
        onSynchronized(sandboxes)
      }
      return synchronizeResponse.encode({ more: part.more })
    },

    CreateContainer(payload) {
      const { pod, container } = containerRequest.decode(payload)
      if (pod === undefined || container === undefined) return EMPTY_RESPONSE
      const answer = handler.create(pod, container, disconnected)
      return answer === undefined ? EMPTY_RESPONSE : answer.then(encodeAdjustment)
    },

    // NRI before 0.12 sends all events by StateChange, later versions by a method of their own.
    StateChange(payload) {
      const change = stateChangeEvent.decode(payload)
      return dispatchEvent(change.event, change)
    },
    RunPodSandbox: createEventMethod(EVENT.runPodSandbox),
    StopPodSandbox: createEventMethod(EVENT.stopPodSandbox),
    PostStartContainer: createEventMethod(EVENT.postStartContainer),
    StopContainer: createEventMethod(EVENT.stopContainer),
    RemoveContainer: createEventMethod(EVENT.removeContainer),

    Shutdown() {
      log('info', 'shutdown')
      return EMPTY_RESPONSE
    },
  }

  return (method, payload) => {
    const serveMethod = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (serveMethod === undefined) throw new Unimplemented(`the plugin has no method ${method}`)
    return serveMethod(payload)
  }
}

/** Encodes two entries for each mount: one with a dash, which removes the mount at the destination, and the new mount. */
function encodeAdjustment(mounts: readonly Mount[] | undefined): Uint8Array {
  if (mounts === undefined || mounts.length === 0) return EMPTY_RESPONSE
  const entries = mounts.flatMap((mount) => [
    { destination: `-${mount.destination}`, type: '', source: '', options: [] },
    mount,
  ])
  return createResponse.encode({ adjust: { mounts: entries } })
}
