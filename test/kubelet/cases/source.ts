import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { BINARY, INSTALLED, install, modekeepsLog } from '../node/drivers.ts'
import { volumeStats } from '../node/kubelet.ts'
import type { StandaloneNode } from '../node/node.ts'
import { until } from '../node/until.ts'
import type { Case } from './case.ts'
import { control, makeFiles } from './tree.ts'

const refused: Case<StandaloneNode> = {
  name: "a refused source is named in the pod's event, and the pod starts by itself once the source is corrected",
  when: 'together',
  small: true,
  async run({ node }) {
    const source = `${node.elsewhere}/late`
    const pod = await node.give({ name: 'refused', driver: 'modekeep', options: { source } })
    const notAllowed = await event(`may not have bind "${source}"`)
    assert(!(await pod.isRunning()))
    node.allow([node.volumes, node.elsewhere])
    const missing = await event(source, 'does not exist')
    assert(!(await pod.isRunning()))
    makeFiles(source, { file: 0o644 })
    await until('the pod runs', () => pod.isRunning())
    const read = await pod.exec('cat /data/file')
    await node.remove(pod)
    node.allow([node.volumes])
    assert.equal(read.text, 'file')
    assert.match(notAllowed, /can add a rule in "allow"/)
    return { modekeep: `${notAllowed}; then: ${missing}; then it ran` }

    /** The driver's sentence in an event about the pod. */
    async function event(...words: string[]): Promise<string> {
      let found = ''
      await until(`an event with ${words.join(' … ')}`, () => {
        for (const line of node.kubelet.log().split('\n')) {
          if (!line.includes('object="default/refused-node"') || !line.includes('reason="FailedMount"')) continue
          const said = line.replaceAll('\\\\\\"', '"').replaceAll('\\"', '"')
          if (words.every((word) => said.includes(word))) found = said
        }
        return found !== ''
      })
      return /reason: (.*?)"?$/.exec(found)?.[1] ?? found
    }
  },
}

const metrics: Case = {
  name: "the kubelet's summary has the use of the volume",
  when: 'together',
  async run({ node }) {
    const size = 64 << 20
    const source = makeFiles(`${node.volumes}/metrics-naive`, { file: 0o644 })
    const theirs = await node.run({ name: 'metrics-naive', driver: 'naive', options: { source } })
    const pod = await node.run({
      name: 'metrics',
      driver: 'modekeep',
      fsType: 'tmpfs',
      options: { mountOptions: `size=${size}` },
      first: 'head -c 8388608 /dev/zero >/data/eight-mebibytes',
    })
    let used = 0
    await until('the summary has the volume', async () => {
      const volume = (await volumeStats(pod.uid)).find(({ name }) => name === 'v')
      used = volume?.usedBytes ?? 0
      return volume?.capacityBytes === size && used >= 8 << 20
    })
    const their = (await volumeStats(theirs.uid)).filter(({ name }) => name === 'v')
    await node.remove(pod, theirs)
    // The kubelet takes a driver that does not say that it supports metrics for one that does not.
    control('volumes in the summary', their.length, 0)
    return { modekeep: `${used} of ${size} bytes used`, naive: 'not in the summary' }
  },
}

const upgrade: Case = {
  name: 'the executable is upgraded by install.sh while pods run and mounts are called',
  when: 'together',
  async run({ node }) {
    const ROUNDS = 6
    const source = makeFiles(`${node.volumes}/upgrade`, { file: 0o644 })
    const stays = await node.run({ name: 'upgrade-stays', driver: 'modekeep', options: { source } })
    const [before] = stays.layers()
    // The same program with other bytes: an ELF file may have something after its end.
    const other = `${node.elsewhere}/modekeep-other`
    fs.copyFileSync(BINARY, other)
    fs.appendFileSync(other, Buffer.alloc(4096))
    const inode = fs.statSync(INSTALLED).ino
    const pods = []
    let upgrades = 0
    for (let round = 0; round < ROUNDS; round++) {
      pods.push(await node.give({ name: `upgrade-${round}`, driver: 'modekeep', options: { source } }))
      if (install(round % 2 === 0 ? other : BINARY).includes('upgraded')) upgrades++
      await new Promise((done) => setTimeout(done, 1000))
    }
    for (const pod of pods) await pod.running()
    const [after] = stays.layers()
    await node.remove(stays, ...pods)
    const failed = modekeepsLog().filter(({ directory, level }) => level === 'error' && directory?.includes('upgrade'))
    assert.equal(upgrades, ROUNDS)
    assert.notEqual(fs.statSync(INSTALLED).ino, inode)
    assert.equal(after?.id, before?.id, 'the mount of the pod that ran is another one')
    assert.deepEqual(failed, [])
    return { modekeep: `${upgrades} upgrades, ${pods.length} pods started meanwhile, no call failed` }
  },
}

export const METRICS = [metrics]
/** They change what a DaemonSet is to write. */
export const OF_THE_NODE = [refused, upgrade]
