import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { type MountRow, parseMountinfo, selectMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'
import { ctr, SOCKET } from './containerd.ts'
import { modekeepsLog } from './drivers.ts'
import { KUBELETS_ROOT, type PodStatus, podStatuses } from './kubelet.ts'
import { DRIVERS, type PodWish, VOLUME } from './manifest.ts'
import { Hopeless, until } from './until.ts'

/** A pod whose manifest the kubelet has been given. */
export class Pod {
  readonly wish: PodWish
  readonly uid: string
  /** Kubelet's directory for all of the pod. */
  readonly directory: string
  /** The mount directory that kubelet passes to the driver. */
  readonly mountPoint: string
  #commands = 0

  constructor(wish: PodWish, uid: string) {
    this.wish = wish
    this.uid = uid
    this.directory = `${KUBELETS_ROOT}/pods/${this.uid}`
    this.mountPoint = `${this.directory}/volumes/${DRIVERS[wish.driver].replace('/', '~')}/${VOLUME}`
  }

  async status(): Promise<PodStatus['status'] | undefined> {
    return (await podStatuses()).find(({ metadata }) => metadata.uid === this.uid)?.status
  }

  async #container() {
    return (await this.status())?.containerStatuses?.[0]
  }

  async isRunning(): Promise<boolean> {
    return (await this.#container())?.state.running !== undefined
  }

  /** Why its container could not be started, if that was so at the last try. */
  async failure(): Promise<string | undefined> {
    const { waiting, terminated } = (await this.#container())?.state ?? {}
    const { reason, message } = waiting ?? terminated ?? {}
    return reason?.endsWith('Error') && reason !== 'Error' ? message : undefined
  }

  /** How often its container has been started again. */
  async restarts(): Promise<number> {
    return (await this.#container())?.restartCount ?? 0
  }

  /** @throws {Hopeless} the driver's error, if it refuses the volume */
  async running(): Promise<this> {
    await until(`${this.uid} runs`, () => {
      const refusal = modekeepsLog().find(({ level, directory }) => level === 'error' && directory === this.mountPoint)
      if (refusal) throw new Hopeless(`${this.uid}: ${refusal.error ?? refusal.message}`)
      return this.isRunning()
    })
    return this
  }

  /** Waits until its container has been started again and runs. */
  async restarted(before: number): Promise<void> {
    await until(`${this.uid} runs again`, async () => (await this.restarts()) > before && (await this.isRunning()))
  }

  /** The id of the first process of its container, as the node sees it. */
  async process(): Promise<number> {
    const id = await this.#containerId()
    const line = ctr('tasks', 'ls')
      .split('\n')
      .find((text) => text.startsWith(id))
    const pid = Number(line?.split(/\s+/)[1])
    if (!pid) throw new Error(`${this.uid} has no process`)
    return pid
  }

  /** Runs a command as the container's user, in its namespaces. */
  async exec(script: string): Promise<{ code: number | null; text: string }> {
    const id = await this.#containerId()
    // ctr drops the output of a command that ends before ctr has opened the output's pipe.
    const command = `(${script}) 2>&1; code=$?; sleep 0.3; exit $code`
    const exec = ['tasks', 'exec', '--exec-id', `exec-${this.#commands++}`, id, '/bin/sh', '-c', command]
    const { status, stdout, stderr } = spawnSync('ctr', ['--address', SOCKET, '--namespace', 'k8s.io', ...exec], {
      encoding: 'utf8',
    })
    return { code: status, text: `${stdout}${status === 0 ? '' : stderr.replace(/^ctr:.*\n?/gm, '')}`.trim() }
  }

  /** A file of the container, by its path in there. */
  async read(path: string): Promise<string> {
    return fs.readFileSync(`/proc/${await this.process()}/root${path}`, 'utf8')
  }

  async #containerId(): Promise<string> {
    const id = (await this.#container())?.containerID
    if (!id) throw new Error(`${this.uid} has no container`)
    return id.replace('containerd://', '')
  }

  /** What is mounted at the volume's directory, one upon the other. */
  layers(): MountRow[] {
    return selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), this.mountPoint)
  }
}
