import type { Worker } from 'node:worker_threads'
import type { NodeConfig } from '../../config/defaults.ts'
import type { Fault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'
import type { ListedSandbox, PodProcessGids } from './cri.ts'
import type { PodVolumes } from './pod-volumes.ts'

/** Somewhat longer than the thread waits for each runtime. */
const MAX_GROUP_READ_WAIT_MS = 700

export interface NodeReaderThreadData {
  /** CRI socket of the runtime; undefined: containerd's usual ones. */
  readonly criSocket: string | undefined
  readonly env: NodeJS.ProcessEnv
}

export type NodeFileReadRequest =
  | { read: 'map' }
  | { read: 'pod'; kubeletDir: string; uid: string }
  | { read: 'groups'; sandbox: string }
  | { read: 'sandboxes' }

export type NodeReadAnswer = { value: unknown } | { refusal: readonly Fault[] } | { error: string }

/** Rules for volumes of other drivers, and the faults of the node's configuration. */
interface MapRulesConfig {
  config: Pick<NodeConfig, 'map'>
  faults: readonly Fault[]
}

/**
 * Reads files of the node, and the groups of pods from the container runtime, in another thread. A disk may be slow, and
 * the runtime replies with JSON of the whole pod, so the thread that answers the runtime must not wait for them.
 */
export class NodeReaderThread implements Disposable {
  readonly #startThread: () => Worker
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0
  #thread: Worker | undefined

  /** @param startThread starts the thread, whose code is driver/node-reader.ts */
  constructor(startThread: () => Worker) {
    this.#startThread = startThread
    this.#thread = this.#start()
  }

  /** Reads the node's configuration. */
  readMap(): Promise<MapRulesConfig> {
    return this.#read({ read: 'map' })
  }

  /** Reads kubelet's directory of a pod. @throws {Refusal} if kubelet has no such directory */
  readPodVolumes(kubeletDir: string, uid: string): Promise<PodVolumes> {
    return this.#read({ read: 'pod', kubeletDir, uid })
  }

  /** Returns the groups of a pod's processes; undefined if no runtime reports them. Never rejects. */
  readProcessGroups(sandbox: string): Promise<PodProcessGids | undefined> {
    const groups = this.#read<PodProcessGids | undefined>({ read: 'groups', sandbox }).catch(() => undefined)
    const timeout = new Promise<undefined>((resolve) => setTimeout(resolve, MAX_GROUP_READ_WAIT_MS, undefined).unref())
    return Promise.race([groups, timeout])
  }

  /** Returns the sandboxes of each runtime that responds. */
  listSandboxes(): Promise<ListedSandbox[][]> {
    return this.#read({ read: 'sandboxes' })
  }

  [Symbol.dispose](): void {
    void this.#thread?.terminate()
  }

  #read<Value>(request: NodeFileReadRequest): Promise<Value> {
    const id = ++this.#lastId
    const read = Promise.withResolvers<unknown>()
    this.#waiting.set(id, read)
    this.#thread ??= this.#start()
    this.#thread.postMessage({ id, request })
    return read.promise as Promise<Value>
  }

  #start(): Worker {
    const thread = this.#startThread()
    thread.unref()
    thread.on('message', ({ id, answer }: { id: number; answer: NodeReadAnswer }) => this.#settle(id, answer))
    const end = () => {
      if (this.#thread === thread) this.#thread = undefined
      for (const id of [...this.#waiting.keys()]) this.#settle(id, { error: 'the thread that reads has ended' })
    }
    thread.on('error', end)
    thread.on('exit', end)
    return thread
  }

  #settle(id: number, answer: NodeReadAnswer): void {
    const { resolve, reject } = this.#waiting.get(id) ?? {}
    this.#waiting.delete(id)
    if ('value' in answer) resolve?.(answer.value)
    else reject?.('refusal' in answer ? new Refusal([...answer.refusal]) : new Error(answer.error))
  }
}
