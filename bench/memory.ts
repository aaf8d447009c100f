import { once } from 'node:events'
import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { CsiNode } from '../test/frontends/csi/node.ts'
import { makeVolume, NriNode, replaced } from '../test/frontends/nri/node.ts'
import { STUCK, stickWorkers } from '../test/frontends/nri/stuck-workers.ts'
import { measureMemory, sumMemory, type UsedMemory } from '../test/helpers/memory.ts'
import { findFreePort } from '../test/helpers/ports.ts'
import { ServingNode } from '../test/helpers/serving-node.ts'
import { aligned } from './columns.ts'

const AT_ONCE = 100
const FILES = 1000
/** So many may be at work when each takes long. */
const PUBLICATIONS = 16
const LARGE = 20_000
/** Calls that a server has had when it is called lasting. */
const MANY = 2000
const GROUP = '2000'
const SAMPLE_MS = 25
/** An idle process releases memory after 5 to 10 s. */
const QUIET_MS = 12_000

/**
 * What each container of the manifests needs: the server and all that it started, idle and while it is called. A text for
 * people.
 */
export async function memory(): Promise<string> {
  const rows = [...(await ofCsi()), ...(await ofNri()), ...(await ofHeal()), ...(await ofDevicePlugin())]
  return `${aligned([['MiB', 'whole', 'own', 'files', 'processes'], ...rows]).join('\n')}\n`
}

async function ofCsi(): Promise<string[][]> {
  const node = new CsiNode()
  try {
    await node.serve()
    const rows = [row('csi, not called yet', await idle(node))]
    const sources = Array.from({ length: AT_ONCE }, (_, pod) => node.volume(`v${pod}`, FILES))
    const wish = { group: GROUP, attributes: { ownership: 'walk' } }
    const all = (make: (pod: number) => ReturnType<CsiNode['publish']>) => async () => {
      const answers = await Promise.all(sources.map((_, pod) => make(pod)))
      for (const { code, message } of answers) if (code !== 'OK' && code !== 'ABORTED') throw new Error(message)
    }
    const publish = all((pod) => node.publish(pod, sources[pod] ?? '', wish))
    rows.push(row(`csi, ${AT_ONCE} volumes of ${FILES} files published at once`, await most(node, publish)))
    await publish()
    rows.push(row('csi, idle after it', await idle(node)))
    const repeats = async () => {
      for (let round = 0; round < MANY / AT_ONCE; round++) await publish()
    }
    rows.push(row(`csi, ${MANY} repeats, ${AT_ONCE} at once`, await most(node, repeats)))
    const large = Array.from({ length: PUBLICATIONS }, (_, at) => node.volume(`large${at}`, LARGE))
    const walks = async () => {
      await Promise.all(large.map((source, at) => node.publish(AT_ONCE + at, source, wish)))
    }
    rows.push(row(`csi, ${PUBLICATIONS} volumes of ${LARGE} files published at once`, await most(node, walks)))
    const unpublish = all((pod) => node.unpublish(pod))
    rows.push(row(`csi, ${AT_ONCE} unpublished at once`, await most(node, unpublish)))
    return rows
  } finally {
    await node.end()
  }
}

async function ofNri(): Promise<string[][]> {
  const node = new NriNode()
  try {
    const source = node.publish(1, makeVolume(node, 1, 64))
    const end = await node.serve()
    const rows = [row('nri, no container yet', await idle(node))]
    let made = 0
    const create = async () => {
      const id = String(made++).padStart(64, '0')
      const request = node.request(1, { 'modekeep/group': GROUP }, source, id)
      const answer = await end.call('CreateContainer', 'ContainerRequest', request)
      if (replaced(answer).length !== 1) throw new Error(`container ${id} got no clone`)
    }
    await create()
    const hundred = async () => void (await Promise.all(Array.from({ length: AT_ONCE }, create)))
    rows.push(row(`nri, ${AT_ONCE} containers at once`, await most(node, hundred)))
    rows.push(row('nri, idle after it', await idle(node)))
    return [...rows, await ofStuckNri()]
  } finally {
    await node.end()
  }
}

async function ofStuckNri(): Promise<string[]> {
  const node = new NriNode()
  const server = await stickWorkers(node, await node.serve())
  try {
    return row(`nri, ${STUCK} workers wait for a volume that hangs`, await idle(node))
  } finally {
    server.resume()
    server.server.kill('SIGKILL')
    await node.end()
  }
}

class Watched extends ServingNode {
  run(...args: readonly string[]): void {
    this.stay(args)
  }

  async end(): Promise<void> {
    for (const child of this.children.filter(({ exitCode }) => exitCode === null)) {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    this.close()
  }
}

async function ofHeal(): Promise<string[][]> {
  const node = new Watched()
  try {
    const at = `127.0.0.1:${await findFreePort()}`
    node.run('heal', '--watch', `--listen=${at}`, '--metrics')
    await ready(`http://${at}/readyz`)
    const rows = [row('heal, no mount', await idle(node))]
    const mounts = async () => {
      for (let pod = 0; pod < AT_ONCE; pod++) {
        const source = `${node.volumes}/v${pod}`
        fs.mkdirSync(source)
        const { status, message } = await node.call('mount', node.podDirectory(`${pod}`), JSON.stringify({ source }))
        if (status !== 'Success') throw new Error(message)
      }
    }
    // Without kubelet's calls, which are processes beside it.
    rows.push(row(`heal, while ${AT_ONCE} volumes are mounted`, await most(node, mounts, 'heal')))
    const scrapes = async () => {
      for (let scrape = 0; scrape < 3; scrape++) {
        await Promise.all(Array.from({ length: AT_ONCE }, async () => (await fetch(`http://${at}/metrics`)).text()))
        await setTimeout(5100)
      }
    }
    rows.push(row(`heal, ${AT_ONCE} scrapes at once`, await most(node, scrapes)))
    return rows
  } finally {
    await node.end()
  }
}

async function ofDevicePlugin(): Promise<string[][]> {
  const node = new Watched()
  try {
    fs.mkdirSync(`${node.kubelet}/device-plugins`)
    node.run('device-plugin', '--kubelet-dir', node.kubelet, '--devices', '100')
    return [row('device-plugin, no kubelet yet', await idle(node))]
  } finally {
    await node.end()
  }
}

async function ready(url: string): Promise<void> {
  while ((await fetch(url).catch(() => undefined))?.status !== 200) await setTimeout(100)
}

async function idle({ top }: ServingNode): Promise<UsedMemory> {
  await setTimeout(QUIET_MS)
  return measureMemory(top)
}

/** The most at one moment while it works. @param word of the processes that count, if not all */
async function most({ top }: ServingNode, work: () => Promise<void>, word?: string): Promise<UsedMemory> {
  let found = measureMemory(top, word)
  let isOver = false
  const working = work().finally(() => {
    isOver = true
  })
  while (!isOver) {
    const now = measureMemory(top, word)
    if (sumMemory(now) > sumMemory(found)) found = now
    await setTimeout(SAMPLE_MS)
  }
  await working
  return found
}

const row = (what: string, used: UsedMemory): string[] => [
  what,
  ...[sumMemory(used), used.own, used.files].map((kilobytes) => (kilobytes / 1024).toFixed(0)),
  String(used.processes),
]
