import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { IMAGE } from '../../kubelet/node/images.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'
import type { Cri } from '../cri/client.ts'
import { bindSubPath, unbindSubPaths, type Volume } from './volumes.ts'

/** Where a container has a volume. */
export interface VolumeMount {
  /** The volume's name in the pod. */
  name: string
  mountPath: string
  subPath?: string
  readOnly?: boolean
}

export interface PodWish {
  name: string
  namespace?: string
  annotations?: Record<string, string>
  volumes: Record<string, Volume>
  mounts: readonly VolumeMount[]
  /** As `supplementalGroups`, or `fsGroup`, gives them to the processes. */
  groups?: readonly number[]
  /** What its containers run; without: a shell. */
  program?: string
  /** Default: 1000, with the group 1000. */
  user?: number
  /** The first id on the node of a user namespace of its own; without: the node's. */
  firstId?: number
}

interface Container {
  id: string
  name: string
}

/** For so long a container that is refused as late is created again. */
const LATE_CONTAINER_PATIENCE_MS = 60_000
/** Ids of a user namespace, as kubelet gives them to a pod. */
const LENGTH = 65_536
/** Kubelet's own mounts of each container. */
const ETC_HOSTS = { container_path: '/etc/hosts', readonly: false }

const POD = 0
const CONTAINER = 1
const NODE = 2

/** A pod whose sandbox and containers are made as kubelet makes them. */
export class Pod {
  readonly wish: PodWish
  readonly uid = randomUUID()
  readonly directory: string
  readonly #cri: Cri
  readonly #sources = new Map<string, string>()
  readonly containers: Container[] = []
  isRemoved = false
  #sandbox = ''
  #hasEnded = false

  constructor(cri: Cri, wish: PodWish) {
    this.#cri = cri
    this.wish = wish
    this.directory = `${KUBELETS_ROOT}/pods/${this.uid}`
  }

  get sandbox(): string {
    return this.#sandbox
  }

  /** Its volumes and its sandbox; a container is another step. */
  async begin(): Promise<this> {
    const { volumes, firstId } = this.wish
    for (const name of ['containers', 'plugins', 'volumes']) {
      fs.mkdirSync(`${this.directory}/${name}`, { recursive: true })
    }
    fs.writeFileSync(`${this.directory}/etc-hosts`, '127.0.0.1 localhost\n')
    for (const [name, volume] of Object.entries(volumes)) this.#sources.set(name, volume.publish(this.uid, name))
    // Kubelet writes it when all volumes are there.
    if (firstId !== undefined) {
      const mappings = [{ hostId: firstId, containerId: 0, length: LENGTH }]
      fs.writeFileSync(`${this.directory}/userns`, JSON.stringify({ uidMappings: mappings, gidMappings: mappings }))
    }
    const reply = await this.#cri.call<{ pod_sandbox_id: string }>('RunPodSandbox', { config: this.#config() })
    this.#sandbox = reply.pod_sandbox_id
    return this
  }

  #config(): object {
    const { name, namespace = 'default', annotations = {}, groups = [] } = this.wish
    return {
      metadata: { name, uid: this.uid, namespace, attempt: 0 },
      log_directory: `/var/log/pods/${namespace}_${name}_${this.uid}`,
      labels: {
        'io.kubernetes.pod.name': name,
        'io.kubernetes.pod.namespace': namespace,
        'io.kubernetes.pod.uid': this.uid,
      },
      annotations: { ...annotations, 'kubernetes.io/config.source': 'api' },
      linux: { security_context: { namespace_options: this.#namespaces(), supplemental_groups: groups } },
    }
  }

  #namespaces(): object {
    const { firstId } = this.wish
    // A user namespace needs a network of its own, for its /sys.
    if (firstId === undefined) return { network: NODE, pid: CONTAINER, ipc: POD }
    const ids = this.#ids()
    return { network: POD, pid: CONTAINER, ipc: POD, userns_options: { mode: POD, uids: ids, gids: ids } }
  }

  #ids(): object[] {
    const { firstId } = this.wish
    return firstId === undefined ? [] : [{ host_id: firstId, container_id: 0, length: LENGTH }]
  }

  /** @returns its id @throws {Error} what a kubelet would have in the pod's event */
  async create(name = 'main', script = 'exec sleep 1000000', attempt = 0): Promise<string> {
    const { groups = [], user = 1000, program = '/bin/sh' } = this.wish
    const config = {
      metadata: { name, attempt },
      image: { image: IMAGE },
      command: [program, '-c', script],
      mounts: [
        ...this.wish.mounts.map((mount, index) => this.#mount(name, mount, index)),
        { ...ETC_HOSTS, host_path: `${this.directory}/etc-hosts`, ...this.#mapped() },
      ],
      labels: { 'io.kubernetes.container.name': name, 'io.kubernetes.pod.uid': this.uid },
      log_path: `${name}/${attempt}.log`,
      linux: {
        security_context: {
          namespace_options: this.#namespaces(),
          run_as_user: { value: user },
          run_as_group: { value: user },
          supplemental_groups: groups,
        },
      },
    }
    const request = { pod_sandbox_id: this.#sandbox, config, sandbox_config: this.#config() }
    const { container_id } = await this.#cri.call<{ container_id: string }>('CreateContainer', request)
    this.containers.push({ id: container_id, name })
    return container_id
  }

  /**
   * Creates a container as kubelet does, which tries again where a container is refused because it came late.
   * @returns how often it was refused
   */
  async createAsKubelet(name: string): Promise<number> {
    const until = performance.now() + LATE_CONTAINER_PATIENCE_MS
    for (let refusals = 0; ; refusals++) {
      try {
        await this.create(name)
        return refusals
      } catch (error) {
        if (!String(error).includes('[map-late]') || performance.now() > until) throw error
        await setTimeout(1000)
      }
    }
  }

  #mount(container: string, { name, mountPath, subPath, readOnly = false }: VolumeMount, index: number): object {
    const source = this.#sources.get(name)
    if (source === undefined) throw new Error(`${this.wish.name} has no volume ${name}`)
    const host_path =
      subPath === undefined ? source : bindSubPath(this.uid, name, container, index, `${source}/${subPath}`)
    return { container_path: mountPath, host_path, readonly: readOnly, ...this.#mapped() }
  }

  #mapped(): object {
    const ids = this.#ids()
    return { uidMappings: ids, gidMappings: ids }
  }

  async start(id = this.#last()): Promise<void> {
    await this.#cri.call('StartContainer', { container_id: id })
  }

  /** Its volumes, its sandbox and one container that runs. */
  async run(): Promise<this> {
    await this.begin()
    await this.create()
    await this.start()
    return this
  }

  #last(): string {
    const id = this.containers.at(-1)?.id
    if (id === undefined) throw new Error(`${this.wish.name} has no container`)
    return id
  }

  /** Runs a script as the container's user. */
  async exec(script: string, id = this.#last()): Promise<{ code: number; text: string }> {
    const request = { container_id: id, cmd: ['/bin/sh', '-c', `(${script}) 2>&1`], timeout: 60 }
    const { stdout, exit_code } = await this.#cri.call<{ stdout: Uint8Array; exit_code: number }>('ExecSync', request)
    return { code: exit_code, text: Buffer.from(stdout).toString().trim() }
  }

  /** What the script writes. @throws {Error} with that, if it fails */
  async says(script: string, id = this.#last()): Promise<string> {
    const { code, text } = await this.exec(script, id)
    if (code !== 0) throw new Error(`${this.wish.name}: ${script}: ${text}`)
    return text
  }

  async stop(id = this.#last()): Promise<void> {
    await this.#cri.call('StopContainer', { container_id: id, timeout: 0 })
  }

  async removeContainer(id = this.#last()): Promise<void> {
    await this.#cri.call('RemoveContainer', { container_id: id })
    this.containers.splice(
      this.containers.findIndex((one) => one.id === id),
      1,
    )
  }

  /** As kubelet does before it has volumes unmounted: the runtime still has the containers. */
  async end(): Promise<void> {
    for (const { id } of this.containers) await this.stop(id)
    if (this.#sandbox) await this.#cri.call('StopPodSandbox', { pod_sandbox_id: this.#sandbox })
    unbindSubPaths(this.uid)
    for (const [name, volume] of Object.entries(this.wish.volumes)) volume.unpublish(this.uid, name)
    this.#hasEnded = true
  }

  /** The runtime's records come last. */
  async remove(): Promise<void> {
    if (!this.#hasEnded) await this.end()
    for (const { id } of [...this.containers]) await this.removeContainer(id)
    if (this.#sandbox) await this.#cri.call('RemovePodSandbox', { pod_sandbox_id: this.#sandbox })
    fs.rmSync(this.directory, { recursive: true })
    this.isRemoved = true
  }
}
