import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../../kubelet/node/until.ts'
import { expect } from '../expect.ts'
import { diskVolume } from '../node/disks.ts'
import { NRI_SOCKET, type RuntimeNode } from '../node/node.ts'
import type { Pod } from '../node/pod.ts'
import type { Case } from './case.ts'
import { createGroupPod, mustWrite, refusal } from './seen.ts'

const NO_PROCESSOR = /modekeep's worker process did not begin.*short of processor time/
/** The plugin has its processor for so long, and then no more until the runtime has given up, ms. */
const HEAD_START_MS = 500
/** Below what a refusal takes that is not remembered, ms. */
const MOST_HEAD_START_MS = 1000
/** Well before a worker has started, ms. */
const SWEEP_MS = 5

/** The plugin on a node that has no processor for it. */
export const STARVED: readonly Case[] = [
  {
    name: 'a plugin without CPU time whose connection is closed: a refused pod is refused at once later, and is created once the plugin has CPU time',
    async run(node) {
      const volume = diskVolume(node, 'starved', 'ext4')
      const pod = (name: string) => createGroupPod(node, name, volume, '2000')
      const refused = await pod('starved').begin()
      const other = await pod('passed-over').begin()
      const workers = stopWorkers(node)
      try {
        expect('the first refusal', await refusal('the first', refused.create()), NO_PROCESSOR)
        const connections = synchronized(node)
        // The runtime goes on without the plugin, and closes its connection.
        await whileStopped(node, 0, other.create())
        await until('the plugin is connected again', () => synchronized(node) > connections)
        expect("the runtime's log", fs.readFileSync(node.containerd.logFile, 'utf8'), /context deadline exceeded/)
        for (const attempt of ['second', 'third']) {
          expect(`the ${attempt} refusal`, await refusalWithinHeadStart(node, refused, attempt), NO_PROCESSOR)
        }
      } finally {
        workers.resume()
      }
      await until('the refused pod is created', () => refused.create().then(() => true), 60)
      await refused.start()
      await mustWrite(refused, volume.path, 2000)
      const healthy = await pod('after-starved').run()
      await mustWrite(healthy, volume.path, 2000)
      for (const one of [refused, other, healthy]) await one.remove()
      volume.unstage()
      return 'refused three times, then sees 2000; one at which the runtime gave up did without'
    },
  },
  {
    name: 'a runtime that closes no connection although the plugin synchronized too late: the plugin reconnects at the first pod that is created without it',
    async run(node) {
      const volume = diskVolume(node, 'skipped', 'ext4')
      const pod = (name: string) => createGroupPod(node, name, volume, '2000')
      await node.plugin.stop('SIGTERM')
      await withLateSynchronization(() => node.startPlugin())
      await until('the runtime has given up', () =>
        fs.readFileSync(node.containerd.logFile, 'utf8').includes('failed to synchronize plugin'),
      )
      const first = await pod('skipped').run()
      await until('the plugin is connected again', () => {
        const log = node.plugin.log()
        return log.includes('"away"') && log.lastIndexOf('"synchronized"') > log.lastIndexOf('"away"')
      })
      const away = /"the runtime created the pod sandbox \w+ without calling the plugin"/.exec(node.plugin.log())
      const second = await pod('after-skipped').run()
      await mustWrite(second, volume.path, 2000)
      for (const one of [first, second]) await one.remove()
      volume.unstage()
      return away === null ? 'the runtime closed the connection' : 'reconnected; the next pod sees 2000'
    },
  },
]

/** Longer than a runtime waits for an answer, ms. */
const LATE_MS = 3000

/** Delays what the runtime sends from its list of pods on, on the first connection that the plugin makes meanwhile. */
async function withLateSynchronization(work: () => Promise<void>): Promise<void> {
  const aside = `${NRI_SOCKET}.aside`
  fs.renameSync(NRI_SOCKET, aside)
  let isLate = true
  const proxy = net.createServer((plugin) => {
    const delaysList = isLate
    isLate = false
    const runtime = net.connect(aside)
    for (const socket of [plugin, runtime]) socket.on('error', () => {})
    plugin.pipe(runtime)
    runtime.on('end', () => plugin.end())
    let sent: Promise<unknown> = Promise.resolve()
    runtime.on('data', (bytes: Buffer) => {
      if (delaysList && bytes.includes('Synchronize')) sent = sent.then(() => delay(LATE_MS))
      sent = sent.then(() => plugin.write(bytes))
    })
  })
  await once(proxy.listen(NRI_SOCKET), 'listening')
  try {
    await work()
  } finally {
    proxy.close()
    fs.renameSync(aside, NRI_SOCKET)
  }
}

/** The number of container lists that the plugin has received. */
const synchronized = (node: RuntimeNode) => node.plugin.log().split('"synchronized"').length

/** Stops the plugin some time after work was begun, until that is done. */
async function whileStopped<Result>(node: RuntimeNode, afterMs: number, work: Promise<Result>): Promise<Result> {
  const pid = node.plugin.pid ?? 0
  work.catch(() => {})
  await Promise.race([work.catch(() => {}), delay(afterMs)])
  process.kill(pid, 'SIGSTOP')
  try {
    return await work
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

/**
 * What the runtime says of a container for which the plugin has its processor only for the head start. On a slow machine the
 * plugin may not be asked that early; the runtime then creates the container without it, and the head start is doubled.
 */
async function refusalWithinHeadStart(node: RuntimeNode, pod: Pod, attempt: string): Promise<string> {
  for (let headStartMs = HEAD_START_MS; ; headStartMs *= 2) {
    const answer = await whileStopped(node, headStartMs, refusal(`the ${attempt}`, pod.create())).catch(String)
    const created = pod.containers.at(-1)
    if (created === undefined) return answer
    if (headStartMs >= MOST_HEAD_START_MS) return `it was created, with a head start of ${headStartMs} ms`
    await pod.removeContainer(created.id)
  }
}

/** Keeps the plugin's worker processes stopped, also those that it starts. */
function stopWorkers(node: RuntimeNode): { resume(): void } {
  const { pid } = node.plugin
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    for (const worker of children.filter(isWorker)) process.kill(Number(worker), name)
  }
  const sweeping = setInterval(() => signal('SIGSTOP'), SWEEP_MS)
  signal('SIGSTOP')
  return {
    resume() {
      clearInterval(sweeping)
      signal('SIGCONT')
    },
  }
}

/** The plugin waits for a child until that has called execve(2): before, it is not stopped. */
function isWorker(pid: string): boolean {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('nri-worker')
  } catch {
    return false
  }
}
