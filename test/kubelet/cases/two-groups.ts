import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { modekeepsLog } from '../node/drivers.ts'
import { until } from '../node/until.ts'
import type { Case } from './case.ts'
import { FILES, tried, USER } from './pods-view.ts'
import { control, look, makeFiles } from './tree.ts'

const GROUPS = [2000, 3000] as const

const idmap: Case = {
  name: 'two pods with two groups use one volume with idmap over kubelet restarts, and nothing changes on disk',
  when: 'restarts',
  small: true,
  async run({ node, threeRestarts }) {
    const ON_DISK = 5000
    const sources = ['modekeep', 'naive'].map((driver) => {
      const source = makeFiles(`${node.volumes}/idmap-${driver}`, FILES)
      for (const name of ['.', ...Object.keys(FILES)]) fs.chownSync(`${source}/${name}`, 0, ON_DISK)
      fs.chmodSync(source, 0o2775)
      return source
    })
    const [ours = '', theirs = ''] = sources
    const before = look(ours)
    const pods = []
    for (const group of GROUPS) {
      const wish = { user: USER, fsGroup: group }
      const options = { source: ours, ownership: 'idmap' }
      pods.push(await node.run({ ...wish, name: `idmap-${group}`, driver: 'modekeep', options }))
      pods.push(await node.run({ ...wish, name: `idmap-${group}-naive`, driver: 'naive', options: { source: theirs } }))
    }
    await threeRestarts(...pods)
    const after = look(ours)
    const layers = pods.filter(({ wish }) => wish.driver === 'modekeep').map((pod) => pod.layers().length)
    const seen: Record<string, string[]> = { modekeep: [], naive: [] }
    for (const pod of pods) {
      const group = (await pod.exec('stat -c %g /data/shared')).text
      seen[pod.wish.driver]?.push(`${pod.wish.fsGroup} sees ${group}, writes ${await tried(pod)}`)
    }
    const made = await pods[0]?.exec('echo new >/data/new && stat -c %g /data/new')
    const onDisk = fs.statSync(`${ours}/new`).gid
    await node.remove(...pods)
    assert.deepEqual(after, before, 'something on disk changed')
    assert.deepEqual(layers, [1, 1])
    assert.deepEqual(
      seen.modekeep,
      GROUPS.map((group) => `${group} sees ${group}, writes shared`),
    )
    assert.equal(made?.text, '2000')
    assert.equal(onDisk, ON_DISK)
    // Whichever of the two pods the kubelet mounted last.
    const own = GROUPS.map((group, at) => seen.naive?.[at]?.startsWith(`${group} sees ${group},`))
    control('how many pods see their own group', own.filter(Boolean).length, 1)
    return { modekeep: seen.modekeep?.join('; ') ?? '', naive: seen.naive?.join('; ') ?? '' }
  },
}

const walks: Case = {
  name: "a second group for a walked volume is refused with the pod's name, until the first pod is deleted",
  when: 'together',
  small: true,
  async run({ node }) {
    const source = makeFiles(`${node.volumes}/two-walks`, FILES)
    const [first, second] = GROUPS.map((fsGroup) => {
      const options = { source, ownership: 'walk' }
      return { name: `walk-${fsGroup}`, driver: 'modekeep', options, fsGroup, user: USER } as const
    })
    assert(first && second)
    const holder = await node.run(first)
    const waiting = await node.give(second)
    let refusal = ''
    await until('the second is refused', () => {
      const lines = modekeepsLog().filter(({ directory }) => directory === waiting.mountPoint)
      refusal = lines.find(({ level }) => level === 'error')?.error ?? ''
      return refusal !== ''
    })
    const between = look(source).get('shared')?.group
    assert(!(await waiting.isRunning()))
    await node.remove(holder)
    await until('the second runs by itself', () => waiting.isRunning())
    const after = look(source).get('shared')?.group
    await node.remove(waiting)
    assert.match(refusal, /walk-2000/)
    assert.deepEqual([between, after], GROUPS)
    return { modekeep: `"${refusal}"; then it ran` }
  },
}

export const TWO_GROUPS = [idmap, walks]
