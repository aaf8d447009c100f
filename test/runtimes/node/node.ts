import * as fs from 'node:fs'
import { NRI, SOCKET, startContainerd } from '../../kubelet/node/containerd.ts'
import { Daemon } from '../../kubelet/node/daemon.ts'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { makeNetwork } from '../../kubelet/node/network.ts'
import { until } from '../../kubelet/node/until.ts'
import { Cri } from '../cri/client.ts'
import type { RuntimeWorld } from '../world.ts'
import { becomeSuite } from './machine.ts'
import { Pod, type PodWish } from './pod.ts'

/** Where containerd listens for plugins, on each version. */
export const NRI_SOCKET = '/run/nri/nri.sock'

/** A machine with a runtime, and the plugin if it is started. */
export interface RuntimeNode {
  readonly cri: Cri
  readonly containerd: Daemon
  readonly plugin: Daemon
  /** For sources of volumes and images of disks. */
  readonly place: string
  pod(wish: PodWish): Pod
  /** Sets the node's rules about volumes of other drivers; without: those that there are by default. */
  configure(map?: readonly object[]): void
  /** Starts the plugin and waits until the runtime knows it. */
  startPlugin(): Promise<void>
  /** Takes away the pods of a case that has failed, as far as that is possible. */
  tidy(): Promise<void>
  /** Ends the runtime and starts it; its containers go on. */
  restartRuntime(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Starts the runtime in this process's namespaces, without the plugin. */
export async function startNode(world: RuntimeWorld): Promise<RuntimeNode> {
  const { place, suite, busybox } = world
  const logs = `${place}/logs`
  for (const directory of [logs, `${place}/volumes`]) fs.mkdirSync(directory, { recursive: true })
  becomeSuite(suite, place, busybox)
  const network = makeNetwork('/usr/lib/cni', `${place}/cni`)
  process.env.PATH = `/usr/sbin:/usr/bin:${process.env.PATH}`
  const runtime = { path: '/usr/sbin:/usr/bin', busybox }
  const containerd = await startContainerd({ place, runtime }, logs, network, NRI)
  const cri = new Cri(SOCKET)
  const answers = () =>
    until('the runtime answers', async () => {
      containerd.mustRun()
      const { status } = await cri.call<{ status: { conditions: { type: string; status: boolean }[] } }>('Status')
      return status.conditions.every((condition) => condition.status)
    })
  await answers()
  const pods: Pod[] = []
  const plugin = new Daemon('nri', logs, [BINARY, 'nri'], process.env)
  return {
    cri,
    containerd,
    plugin,
    place: `${place}/volumes`,
    pod(wish) {
      const pod = new Pod(cri, wish)
      pods.push(pod)
      return pod
    },
    async tidy() {
      for (const pod of pods.splice(0).filter(({ isRemoved }) => !isRemoved)) await pod.remove().catch(() => {})
    },
    configure(map) {
      const allow = [{ sources: [`${place}/volumes/*`] }]
      const config = { allow, ...(map === undefined ? {} : { map }) }
      fs.writeFileSync('/etc/modekeep/config.json.new', JSON.stringify(config))
      fs.renameSync('/etc/modekeep/config.json.new', '/etc/modekeep/config.json')
    },
    async startPlugin() {
      plugin.start()
      await until('the runtime knows the plugin', () => {
        plugin.mustRun()
        return plugin.log().includes('synchronized')
      })
    },
    async restartRuntime(signal = 'SIGTERM') {
      await containerd.stop(signal)
      containerd.start()
      await answers()
    },
  }
}
