import * as fs from 'node:fs'
import type { World } from '../world.ts'
import { startContainerd } from './containerd.ts'
import type { Daemon } from './daemon.ts'
import { install, installNaive } from './drivers.ts'
import { makeKubelet, podStatuses } from './kubelet.ts'
import { hasReconciled, hasSetUp } from './kubelet-log.ts'
import { manifest, type PodWish } from './manifest.ts'
import { Pod } from './pod.ts'
import { until } from './until.ts'

const ALLOWED_KINDS = ['bind', 'tmpfs', 'fuse.bindfs']

/** A machine with containerd, kubelet and the two drivers. */
export interface TestNode {
  readonly kubelet: Daemon
  /** Whether the kubelet calls drivers again for volumes that are mounted when it starts. */
  readonly repeatsMounts: boolean
  /** Sources of volumes are made here; the node's configuration allows them. */
  readonly volumes: string
  /** For what is to lie outside of it. */
  readonly elsewhere: string
  /** Gives the kubelet a pod, without waiting for it. */
  give(wish: PodWish): Promise<Pod>
  run(wish: PodWish): Promise<Pod>
  /** Takes pods away and waits until nothing of them is left in the kubelet's directory. */
  remove(...pods: readonly Pod[]): Promise<void>
  /** Ends the kubelet and starts it; waits until it has set up the volumes of these pods again, or could have. */
  restartKubelet(signal: 'SIGTERM' | 'SIGKILL', pods: readonly Pod[]): Promise<void>
}

/** One whose kubelet has no API server: its pods are files. */
export class StandaloneNode implements TestNode {
  readonly kubelet: Daemon
  readonly repeatsMounts = true
  readonly volumes: string
  readonly elsewhere: string
  readonly #manifests: string

  private constructor(place: string, kubelet: Daemon, manifests: string) {
    this.kubelet = kubelet
    this.volumes = `${place}/volumes`
    this.elsewhere = `${place}/elsewhere`
    this.#manifests = manifests
    for (const directory of [this.volumes, this.elsewhere]) fs.mkdirSync(directory)
  }

  /** Both drivers are installed while the kubelet runs. */
  static async start(world: World): Promise<StandaloneNode> {
    const logs = `${world.place}/logs`
    fs.mkdirSync(logs)
    process.env.PATH = `${world.runtime.path}:${process.env.PATH}`
    await startContainerd(world, logs)
    const manifests = `${world.place}/manifests`
    const node = new StandaloneNode(world.place, makeKubelet(world, logs, manifests), manifests)
    await node.#start()
    node.allow([node.volumes])
    install()
    installNaive()
    return node
  }

  async #start(): Promise<void> {
    this.kubelet.start()
    await until('kubelet answers', async () => {
      this.kubelet.mustRun()
      await podStatuses()
      return true
    })
  }

  /** Sets what pods may mount. */
  allow(directories: readonly string[]): void {
    const sources = directories.map((directory) => `${directory}/*`)
    fs.mkdirSync('/etc/modekeep', { recursive: true })
    fs.writeFileSync('/etc/modekeep/config.json.new', JSON.stringify({ allow: [{ sources, fsTypes: ALLOWED_KINDS }] }))
    fs.renameSync('/etc/modekeep/config.json.new', '/etc/modekeep/config.json')
  }

  async give(wish: PodWish): Promise<Pod> {
    return this.giveAsItIs(wish, manifest(wish))
  }

  /** The same with a manifest of the caller's, whose name and uid are those of the wish. */
  giveAsItIs(wish: PodWish, whole: object): Pod {
    const file = `${this.#manifests}/${wish.name}.json`
    // The kubelet passes over names with a leading dot.
    fs.writeFileSync(`${this.#manifests}/.${wish.name}`, JSON.stringify(whole))
    fs.renameSync(`${this.#manifests}/.${wish.name}`, file)
    return new Pod(wish, wish.name)
  }

  async run(wish: PodWish): Promise<Pod> {
    return (await this.give(wish)).running()
  }

  /** Takes a pod away, without waiting for its end. */
  withdraw({ wish }: Pod): void {
    fs.rmSync(`${this.#manifests}/${wish.name}.json`)
  }

  async remove(...pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) this.withdraw(pod)
    for (const { directory, uid } of pods) await until(`${uid} is gone`, () => !fs.existsSync(directory))
  }

  async restartKubelet(signal: 'SIGTERM' | 'SIGKILL', pods: readonly Pod[]): Promise<void> {
    await this.kubelet.stop(signal)
    await this.#start()
    await waitForMounts(this, pods)
  }
}

/** A kubelet that repeats no mount is given this time after its start to call a driver all the same. */
const RECONCILE_MS = 15_000

/** Returns when the kubelet has set up the volumes of these pods since its last start, or could have. */
export async function waitForMounts(
  { kubelet, repeatsMounts }: Pick<TestNode, 'kubelet' | 'repeatsMounts'>,
  pods: readonly Pod[],
): Promise<void> {
  if (repeatsMounts) {
    for (const { uid } of pods) await until(`${uid}: mounted again`, () => hasSetUp(kubelet.log(), uid))
  } else if (pods.length > 0) {
    await until('kubelet compares mounts with pods', () => hasReconciled(kubelet.log()))
    await new Promise((done) => setTimeout(done, RECONCILE_MS))
  }
}
