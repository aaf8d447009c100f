import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { BINARY, INSTALLED } from '../../kubelet/node/drivers.ts'
import { until } from '../../kubelet/node/until.ts'
import { one, type Resource } from '../../kubernetes/render.ts'
import type { Cluster } from '../plane/cluster.ts'
import { giveImage, podsOfRelease, releaseOf, rolledOut } from '../plane/release.ts'
import type { Case } from './case.ts'

const CONFIG = '/etc/modekeep/config.json'
const KEY = 'modekeep/config'

const undone: Case = {
  name: 'a configuration is rolled out, refused and rolled back together with its image, and no ConfigMap remains',
  async run(cluster) {
    const first = releaseOf(cluster, '1')
    const [before, beside] = [read(), fs.statSync(INSTALLED).size]
    assert.equal(before, configOf(first))
    const newer = `${cluster.elsewhere}/configured`
    fs.copyFileSync(BINARY, newer)
    fs.appendFileSync(newer, Buffer.alloc(8192))
    giveImage(cluster, '3', newer)
    const third = releaseOf(cluster, '3')
    const other = `${JSON.stringify({ ...JSON.parse(before), logLevel: 'debug' })}\n`

    await cluster.apply(...withConfig(third, other))
    await rolledOut(cluster)
    assert.deepEqual([read(), fs.statSync(INSTALLED).size], [other, fs.statSync(newer).size])

    await cluster.apply(...withConfig(third, '{ "allow": 1 }'))
    await until('its installer names the key', async () => (await saidByInstaller(cluster)).includes('"allow"'))
    assert.equal(read(), other)
    await undo(cluster)
    assert.deepEqual([read(), fs.statSync(INSTALLED).size], [other, fs.statSync(newer).size])

    await cluster.apply(...first)
    await rolledOut(cluster)
    assert.deepEqual([read(), fs.statSync(INSTALLED).size], [before, beside])
    await undo(cluster)
    assert.deepEqual([read(), fs.statSync(INSTALLED).size], [other, fs.statSync(newer).size])
    await undo(cluster)
    assert.deepEqual([read(), fs.statSync(INSTALLED).size], [before, beside])
    const maps = await cluster.kubectl('get', 'configmaps', '-A', '-o', 'name')
    assert(!maps.includes('modekeep'), maps)
    return 'another one, a broken one that changes nothing, and back three times; no ConfigMap'
  },
}

const read = () => fs.readFileSync(CONFIG, 'utf8')

const configOf = (resources: readonly Resource[]): string =>
  one(resources, 'DaemonSet').spec.template.metadata.annotations[KEY]

function withConfig(resources: readonly Resource[], config: string): Resource[] {
  const copy = structuredClone([...resources])
  one(copy, 'DaemonSet').spec.template.metadata.annotations[KEY] = config
  return copy
}

async function undo(cluster: Cluster): Promise<void> {
  await cluster.kubectl('rollout', 'undo', 'daemonset/modekeep', '-n', 'kube-system')
  await rolledOut(cluster)
}

async function saidByInstaller(cluster: Cluster): Promise<string> {
  const said = (await podsOfRelease(cluster)).map((name) =>
    cluster.kubectl('logs', '-n', 'kube-system', name, '-c', 'install'),
  )
  return (await Promise.all(said)).join('')
}

export const CONFIGURATION: readonly Case[] = [undone]
