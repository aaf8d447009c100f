import { type ChildProcess, execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { MODEKEEP } from '../../binary/modekeep.ts'
import { ServingNode } from '../../helpers/serving-node.ts'
import { type Answer, call } from './kubelet.ts'

/** What a pod's volume asks for, and how kubelet calls. */
export interface Wish {
  attributes?: Record<string, string>
  group?: string
  secrets?: Record<string, string>
  ephemeral?: boolean
  /** By default `csi-` and the pod's number. */
  volumeId?: string
  /** csi.proto: VolumeCapability.AccessMode.Mode */
  mode?: number
  deadlineMs?: number
  signal?: AbortSignal
}

/** A node with a kubelet's directory on which the built executable serves CSI. */
export class CsiNode extends ServingNode {
  /** @param isStated whether the configuration states that kubelet names the pods, as no API server is there */
  constructor({ isStated = true } = {}) {
    super()
    if (isStated) this.configure({ csiPodInfoOnMount: true })
  }

  get socket(): string {
    return `${this.kubelet}/plugins/modekeep.csi/csi.sock`
  }

  get registration(): string {
    return `${this.kubelet}/plugins_registry/modekeep.csi-reg.sock`
  }

  get server(): ChildProcess {
    return this.served
  }

  /** Its workers: processes of this user with the word, and this node's configuration. */
  workers(): number[] {
    return fs.readdirSync('/proc').flatMap((pid) => {
      if (!/^\d+$/.test(pid)) return []
      try {
        const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        const isOurs = fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(this.top)
        return words[1] === 'csi-worker' && isOurs ? [Number(pid)] : []
      } catch {
        return []
      }
    })
  }

  /** Whether a worker has begun a task for the pod's volume: it has the target's parent open, also while it waits for its lock. */
  isAtWork(pod: number): boolean {
    const parent = dirname(this.target(pod))
    return this.workers().some((worker) => {
      try {
        const descriptors = fs.readdirSync(`/proc/${worker}/fd`)
        return descriptors.some((fd) => fs.readlinkSync(`/proc/${worker}/fd/${fd}`) === parent)
      } catch {
        return false
      }
    })
  }

  /** Resolves when it can be called. */
  async serve({ isWaiting = false, executable = MODEKEEP, options = [] as string[] } = {}): Promise<ChildProcess> {
    const before = this.events.filter(({ event }) => event === 'listening').length
    const child = this.stay(['csi', '--kubelet-dir', this.kubelet, ...options], executable)
    const isReady = () => this.events.filter(({ event }) => event === 'listening').length > before
    if (!isWaiting) await until(() => isReady() || child.exitCode !== null)
    return child
  }

  /** As kubelet makes it: the parent alone. */
  target(pod: number): string {
    const above = `${this.kubelet}/pods/${this.uid(pod)}/volumes/kubernetes.io~csi/v`
    fs.mkdirSync(above, { recursive: true, mode: 0o750 })
    return `${above}/mount`
  }

  /** A directory of a volume with so many files. */
  volume(name: string, files: number): string {
    const source = `${this.volumes}/${name}`
    fs.mkdirSync(source)
    for (let file = 0; file < files; file++) fs.writeFileSync(`${source}/${file}`, '')
    return source
  }

  /** What kubelet sends of a pod and its volume. */
  volumeContext(pod: number, source: string, attributes: Record<string, string> = {}, ephemeral = true) {
    return {
      source,
      ...attributes,
      'csi.storage.k8s.io/pod.name': `pod-${pod}`,
      'csi.storage.k8s.io/pod.namespace': 'shop',
      'csi.storage.k8s.io/pod.uid': this.uid(pod),
      'csi.storage.k8s.io/serviceAccount.name': 'default',
      'csi.storage.k8s.io/ephemeral': String(ephemeral),
    }
  }

  publish(pod: number, source: string, wish: Wish = {}): Promise<Answer> {
    const { attributes, group = '', secrets = {}, ephemeral = true, deadlineMs = 120_000, signal } = wish
    const { volumeId = `csi-${pod}`, mode = 1 } = wish
    const request = {
      volume_id: volumeId,
      target_path: this.target(pod),
      volume_capability: { mount: { volume_mount_group: group }, access_mode: { mode } },
      secrets,
      volume_context: this.volumeContext(pod, source, attributes, ephemeral),
    }
    return call({ socket: this.socket, deadlineMs }, 'Node/NodePublishVolume', request, signal)
  }

  unpublish(pod: number, deadlineMs = 120_000): Promise<Answer> {
    const request = { volume_id: `csi-${pod}`, target_path: this.target(pod) }
    return call({ socket: this.socket, deadlineMs }, 'Node/NodeUnpublishVolume', request)
  }

  stats(pod: number): Promise<Answer> {
    const request = { volume_id: `csi-${pod}`, volume_path: this.target(pod) }
    return call({ socket: this.socket }, 'Node/NodeGetVolumeStats', request)
  }

  /** Ends servers and their workers, and then what they mounted. */
  async end(): Promise<void> {
    for (const child of this.children) child.kill('SIGKILL')
    for (const pid of this.workers()) process.kill(pid, 'SIGKILL')
    await until(() => this.workers().length === 0)
    this.close()
  }
}

export async function until(isSo: () => boolean, ms = 60_000): Promise<void> {
  const end = performance.now() + ms
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not so after ${ms} ms: ${isSo}`)
    await setTimeout(20)
  }
}

export function mounted(path: string): boolean {
  try {
    execFileSync('mountpoint', ['-q', path])
    return true
  } catch {
    return false
  }
}
