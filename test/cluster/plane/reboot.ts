import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { runCommand } from '../../../scripts/fetch/command.ts'
import { parseMountinfo } from '../../../src/kernel/mount-table/mountinfo.ts'
import { ctr } from '../../kubelet/node/containerd.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'
import { until } from '../../kubelet/node/until.ts'
import { NODE } from './certificates.ts'
import type { Cluster } from './cluster.ts'

const BOOT_ID = '/proc/sys/kernel/random/boot_id'
const OF_PODS = [`${KUBELETS_ROOT}/`, '/run/']

/** Takes the node's power: every process of it is gone at once, the control plane is another machine's. */
export async function powerOff({ daemons }: Cluster): Promise<void> {
  const { kubelet, containerd, ...plane } = daemons
  for (const daemon of [kubelet, containerd]) await daemon.stop('SIGKILL')
  const kept = new Set([...ancestors(process.pid), ...Object.values(plane).map(({ pid }) => pid)])
  await until('no process of the node is left', () => {
    // What was started meanwhile goes in the next round.
    const found = processes().filter((pid) => !kept.has(pid))
    for (const pid of found) end(pid)
    return found.length === 0
  })
}

/** What a start of the kernel leaves: no mounts, nothing in /run, no bridge, another boot, all files. */
export function boot({ busybox, elsewhere }: Cluster): void {
  const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
  const gone = rows
    .map(({ mountPoint }) => mountPoint)
    .filter((path) => OF_PODS.some((start) => path.startsWith(start)))
  for (const path of gone.reverse()) runCommand('umount', ['--lazy', path])
  for (const name of fs.readdirSync('/run')) fs.rmSync(`/run/${name}`, { recursive: true })
  runCommand(busybox, ['ip', 'link', 'delete', 'cni0'])
  const file = `${elsewhere}/boot-id`
  fs.writeFileSync(`${file}.new`, `${randomUUID()}\n`)
  fs.renameSync(`${file}.new`, file)
  runCommand('mount', ['--bind', file, BOOT_ID])
}

/** Starts the node's programs again; returns when the API server knows of the new boot. */
export async function start(cluster: Cluster): Promise<void> {
  const { containerd } = cluster.daemons
  containerd.start()
  await until('containerd answers', () => {
    containerd.mustRun()
    return ctr('version') !== ''
  })
  await cluster.restart('kubelet')
  const id = fs.readFileSync(BOOT_ID, 'utf8').trim()
  await until('the node has another boot', async () => {
    return (await cluster.get(`node/${NODE}`))?.status.nodeInfo.bootID === id
  })
}

/** The run has a pid namespace of its own. */
const processes = () =>
  fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

function ancestors(pid: number): number[] {
  const parent = Number(/^PPid:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  return parent === 0 ? [pid] : [pid, ...ancestors(parent)]
}

/** It may have ended by itself. */
function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
