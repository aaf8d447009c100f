import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { NodeDirectory } from './node-directory.ts'
import { PodResources } from './pod-resources.ts'

/** Where kubelet keeps the logs of pods. */
const LOGS = '/var/log/pods'

/** The uid of the pod that is gone. */
export const LEFT = '11111111-1111-4111-8111-111111111111'
const PROXY = '22222222-2222-4222-8222-222222222222'

/** What kubelet hands over of a pod. */
export const podOptions = (uid: string, name = 'web-0') => ({
  'kubernetes.io/pod.name': name,
  'kubernetes.io/pod.namespace': 'default',
  'kubernetes.io/pod.uid': uid,
})

/**
 * A node's kubelet as far as heal asks for it: its pod-resources socket, the logs of pods, and one pod of the API server that
 * runs. Other pods are deleted.
 */
export class KubeletAside {
  readonly node: NodeDirectory
  resources: PodResources | undefined
  readonly #processes: ChildProcess[] = []

  private constructor(node: NodeDirectory) {
    this.node = node
  }

  static async start(node: NodeDirectory, options: Parameters<typeof PodResources.listen>[1] = {}) {
    const kubelet = new KubeletAside(node)
    fs.mkdirSync(LOGS, { recursive: true })
    // Only the tests' mount namespace has it.
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'modekeep-test-logs', LOGS])
    kubelet.addLogs('kube-system', 'proxy', PROXY)
    await kubelet.run(PROXY)
    await kubelet.listen(options)
    return kubelet
  }

  /** A kubelet that starts now. It knows pods whose directory existed before only from its arguments. */
  async listen(options: Parameters<typeof PodResources.listen>[1] = {}): Promise<void> {
    await this.resources?.close()
    const directory = `${this.node.top}/pod-resources`
    fs.mkdirSync(directory, { recursive: true, mode: 0o750 })
    // The clock that dates files has ticks of up to ten milliseconds.
    await setTimeout(25)
    this.resources = await PodResources.listen(`${directory}/kubelet.sock`, options)
    this.resources.pods = ['kube-system/proxy']
  }

  addLogs(namespace: string, name: string, uid: string): void {
    fs.mkdirSync(`${LOGS}/${namespace}_${name}_${uid}`)
  }

  /** A process in a mount namespace of its own that has the pod's hosts file, as each container has it. */
  async run(uid: string): Promise<ChildProcess> {
    const hosts = `${this.node.top}/pods/${uid}/etc-hosts`
    fs.mkdirSync(`${this.node.top}/pods/${uid}`, { recursive: true })
    fs.writeFileSync(hosts, '127.0.0.1 localhost\n')
    const script = `mount --bind '${hosts}' /etc/hosts && echo ready && exec sleep 1000`
    const child = spawn('unshare', ['-m', '/bin/sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#processes.push(child)
    await new Promise<void>((resolve, reject) => {
      child.stdout?.once('data', () => resolve())
      child.once('exit', () => reject(new Error('the process of the pod has ended')))
    })
    return child
  }

  async close(): Promise<void> {
    for (const child of this.#processes) child.kill('SIGKILL')
    await this.resources?.close()
    execFileSync('umount', ['--lazy', LOGS])
  }
}
