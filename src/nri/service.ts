import type { Level } from '../log/call-log.ts'
import { type Serve, Unimplemented } from './connection.ts'
import {
  type Configuration,
  type Container,
  codec,
  EVENT,
  EVENT_MASK,
  type Mount,
  type PodSandbox,
} from './messages.ts'

/** What is done for the containers that a runtime tells of. */
export interface Containers {
  /**
   * Before it is created.
   * @param unheard once nobody waits for the answer any more
   * @returns the mounts that take the place of those at the same destinations; undefined: none
   * @throws {Refusal} (also later) where it must not be created
   */
  create(pod: PodSandbox, container: Container, unheard: AbortSignal): Promise<readonly Mount[] | undefined> | undefined
  /** Its containers are to come. Must not throw. */
  sandboxStarted(pod: PodSandbox): void
  /** It runs: its mounts are its own. Must not throw. */
  started(pod: PodSandbox, container: Container): void
  /** It has ended, or will never run. It may be told twice. Must not throw. */
  gone(container: string): void
  /** All its containers have ended, also those that never ran, of which nothing else is told. Must not throw. */
  sandboxStopped(sandbox: string): void
  /** All there are, at each connection, before anything else is told. Must not throw. */
  synchronize(pods: readonly PodSandbox[], containers: readonly Container[]): void
}

/** Must not throw. */
type Log = (level: Level, event: string, facts?: Record<string, unknown>) => void

/** What an event is about. */
type Told = { pod?: PodSandbox | undefined; container?: Container | undefined }

/** More than a node runs: what a runtime tells in parts is bounded. */
const MOST_TOLD = 100_000

const NOTHING = new Uint8Array()

const configure = codec('ConfigureRequest')
const configured = codec('ConfigureResponse')
const synchronize = codec('SynchronizeRequest')
const synchronized = codec('SynchronizeResponse')
const told = codec('ContainerRequest')
const created = codec('CreateContainerResponse')
const stateChange = codec('StateChangeEvent')

/** The plugin's service, for one connection. */
export function methods(containers: Containers, log: Log, onSynchronized: () => void, unheard: AbortSignal): Serve {
  let pods: PodSandbox[] = []
  let running: Container[] = []

  const tell = (event: number, { pod, container }: Told) => {
    if (event === EVENT.runPodSandbox && pod) containers.sandboxStarted(pod)
    if (event === EVENT.stopPodSandbox && pod) containers.sandboxStopped(pod.id)
    if (event === EVENT.postStartContainer && pod && container) containers.started(pod, container)
    if ((event === EVENT.stopContainer || event === EVENT.removeContainer) && container) containers.gone(container.id)
    return NOTHING
  }
  const telling = (event: number) => (payload: Uint8Array) => tell(event, told.decode(payload))

  const all: Readonly<Record<string, (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>>> = {
    Configure(payload) {
      log('info', 'configured', facts(configure.decode(payload)))
      return configured.encode({ events: EVENT_MASK })
    },

    Synchronize(payload) {
      const part = synchronize.decode(payload)
      pods.push(...part.pods)
      running.push(...part.containers)
      if (pods.length + running.length > MOST_TOLD) throw new Error(`more than ${MOST_TOLD} pods and containers`)
      if (!part.more) {
        log('info', 'synchronized', { pods: pods.length, containers: running.length })
        containers.synchronize(pods, running)
        ;[pods, running] = [[], []]
        onSynchronized()
      }
      return synchronized.encode({ more: part.more })
    },

    CreateContainer(payload) {
      const { pod, container } = told.decode(payload)
      if (pod === undefined || container === undefined) return NOTHING
      const answer = containers.create(pod, container, unheard)
      return answer === undefined ? NOTHING : answer.then(adjustment)
    },

    // By one method for all in NRI before 0.12, by a method for each since.
    StateChange(payload) {
      const change = stateChange.decode(payload)
      return tell(change.event, change)
    },
    RunPodSandbox: telling(EVENT.runPodSandbox),
    StopPodSandbox: telling(EVENT.stopPodSandbox),
    PostStartContainer: telling(EVENT.postStartContainer),
    StopContainer: telling(EVENT.stopContainer),
    RemoveContainer: telling(EVENT.removeContainer),

    Shutdown() {
      log('info', 'shutdown')
      return NOTHING
    },
  }

  return (method, payload) => {
    const serveMethod = Object.hasOwn(all, method) ? all[method] : undefined
    if (serveMethod === undefined) throw new Unimplemented(`the plugin has no method ${method}`)
    return serveMethod(payload)
  }
}

/** A mount is replaced by two entries: one with a dash, which takes away what is at the destination, and the new one. */
function adjustment(mounts: readonly Mount[] | undefined): Uint8Array {
  if (mounts === undefined || mounts.length === 0) return NOTHING
  const entries = mounts.flatMap((mount) => [
    { destination: `-${mount.destination}`, type: '', source: '', options: [] },
    mount,
  ])
  return created.encode({ adjust: { mounts: entries } })
}

function facts({ runtimeName, runtimeVersion, requestTimeout, nriVersion }: Configuration): Record<string, unknown> {
  return {
    runtime: runtimeName,
    version: runtimeVersion,
    ...(nriVersion === '' ? {} : { nri: nriVersion }),
    ...(requestTimeout > 0n ? { requestTimeoutMs: Number(requestTimeout) } : {}),
  }
}
