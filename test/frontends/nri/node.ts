import { type ChildProcess, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { measureEachProcess } from '../../helpers/memory.ts'
import { BINARY } from '../../helpers/node-directory.ts'
import { ServingNode } from '../../helpers/serving-node.ts'
import { decode } from './proto.ts'
import { type Answer, FakeRuntime, type RuntimeEnd } from './runtime.ts'

const GROUP_ON_DISK = 500

export interface ReplacedMount {
  destination: string
  type: string
  source: string
  options: string[]
}

/** A node with a fake runtime, and pods with a CSI volume of another driver, on which the built executable is the plugin. */
export class NriNode extends ServingNode {
  readonly runtime = new FakeRuntime()

  get socket(): string {
    return `${this.top}/nri.sock`
  }

  get plugin(): ChildProcess {
    return this.served
  }

  /**
   * Listens as a runtime, starts the plugin, and tells it of all that runs.
   * @param more options of the plugin
   */
  async serve(pods: object[] = [], containers: object[] = [], more: readonly string[] = []): Promise<RuntimeEnd> {
    if (!fs.existsSync(this.socket)) await this.runtime.listen(this.socket)
    const connected = this.runtime.next()
    const where = more.includes('--kubelet-dir') ? [] : ['--kubelet-dir', this.kubelet]
    this.stay(['nri', ...where, '--socket', this.socket, ...more])
    const end = await connected
    await end.start(pods, containers)
    return end
  }

  probe(): { status: number | null; stderr: string } {
    const env = { MODEKEEP_CONFIG: `${this.top}/config.json` }
    try {
      execFileSync(BINARY, ['nri', '--probe'], { env, stdio: 'pipe' })
      return { status: 0, stderr: '' }
    } catch (error) {
      const { status, stderr } = error as { status: number; stderr: Buffer }
      return { status, stderr: String(stderr) }
    }
  }

  /** What kubelet and a CSI driver have made for a pod; `volume` is a directory on a file system that can be mapped. */
  publish(pod: number, volume: string, driver = 'ebs.csi.example.com', name = 'pvc-1'): string {
    const above = `${this.kubelet}/pods/${this.uid(pod)}/volumes/kubernetes.io~csi/${name}`
    fs.mkdirSync(`${above}/mount`, { recursive: true, mode: 0o750 })
    fs.writeFileSync(`${above}/vol_data.json`, JSON.stringify({ driverName: driver, specVolID: name }))
    execFileSync('mount', ['--bind', volume, `${above}/mount`])
    return `${above}/mount`
  }

  /** What kubelet has made of an emptyDir; the directory is the node's own. */
  emptyDir(pod: number, name: string): string {
    const directory = `${this.kubelet}/pods/${this.uid(pod)}/volumes/kubernetes.io~empty-dir/${name}`
    fs.mkdirSync(directory, { recursive: true })
    fs.chownSync(directory, 0, GROUP_ON_DISK)
    return directory
  }

  /** A part of a volume, as kubelet binds it for a container. */
  subPath(pod: number, volume: string, part: string): string {
    const target = `${this.kubelet}/pods/${this.uid(pod)}/volume-subpaths/${volume}/app/0`
    fs.mkdirSync(target, { recursive: true })
    execFileSync('mount', ['--bind', part, target])
    return target
  }

  /** A request of the runtime's about a pod's container. */
  request(pod: number, annotations: Record<string, string>, source?: string, container = `${pod}`.padStart(64, 'c')) {
    const mount = { destination: '/data', type: 'bind', source, options: ['rbind', 'rprivate', 'rw'] }
    return {
      pod: { id: `sandbox-${pod}`, name: `pod-${pod}`, uid: this.uid(pod), namespace: 'shop', annotations },
      container: {
        id: container,
        podSandboxId: `sandbox-${pod}`,
        name: 'app',
        args: ['sh', '-c', 'sleep 3600'],
        env: Array.from({ length: 20 }, (_, at) => `VARIABLE_${at}=${'x'.repeat(40)}`),
        mounts: [
          ...['/proc', '/dev', '/sys'].map((destination) => ({ destination, type: 'proc', source: 'proc' })),
          { destination: '/etc/hosts', type: 'bind', source: `${this.kubelet}/pods/${this.uid(pod)}/etc-hosts` },
          ...(source === undefined ? [] : [mount]),
        ],
      },
    }
  }

  /** The plugin has ended by the signal. @returns its exit status */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const { plugin } = this
    if (plugin.exitCode === null && plugin.signalCode === null) {
      plugin.kill(signal)
      await once(plugin, 'exit')
    }
    return plugin.exitCode
  }

  async end(): Promise<void> {
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    await this.runtime.close()
    // A worker ends a moment after its pipe, unless its volume hangs.
    for (let pause = 0; pause < 50 && measureEachProcess(this.top, 'nri-worker').length > 0; pause++)
      await setTimeout(100)
    this.close()
  }
}

/** A file system of its own at a directory of the node, with files of a group. */
export function makeVolume(node: NriNode, files: number, megabytes = 64): string {
  const point = `${node.top}/fs`
  fs.mkdirSync(point)
  execFileSync('truncate', ['-s', `${megabytes}M`, `${node.top}/image`])
  execFileSync('mkfs.ext4', ['-q', '-F', '-N', String(files + 1000), `${node.top}/image`])
  execFileSync('mount', ['-o', 'loop', `${node.top}/image`, point])
  const volume = `${point}/volume`
  fs.mkdirSync(volume)
  for (let file = 0; file < files; file++) {
    if (file % 1000 === 0) fs.mkdirSync(`${volume}/${file / 1000}`)
    fs.writeFileSync(`${volume}/${Math.floor(file / 1000)}/${file}`, '')
  }
  execFileSync('chgrp', ['-R', String(GROUP_ON_DISK), volume])
  execFileSync('chmod', ['-R', 'g+rwX,o=', volume])
  return volume
}

/** The mounts that take others' places. */
export function replaced({ payload, status }: Answer): ReplacedMount[] {
  if (status !== undefined) throw new Error(status.message)
  const { adjust } = decode('CreateContainerResponse', payload)
  return (adjust?.mounts ?? []).filter(({ destination }: ReplacedMount) => !destination.startsWith('-'))
}
