import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../helpers/tree.ts'

const title = `gc during mounts and unmounts of pods${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
const PODS = sized(5, 20)
const TURNS = sized(3, 20)

describe.skipIf(!isRoot)(title, () => {
  it('gc during mounts and unmounts removes nothing of a running call: each mount applies the group, and each unmount restores it', async () => {
    const node = new BinaryNode()
    let isOver = false
    let collections = 0
    const collect = async () => {
      while (!isOver) {
        const { text, code } = await node.start(['gc', '--json']).ended
        const { items } = JSON.parse(text) as { items: { action: string }[] }
        expect({ code, failed: items.filter(({ action }) => action === 'failed') }).toEqual({ code: 0, failed: [] })
        collections++
      }
    }
    const live = async (pod: string) => {
      const source = `${node.volumes}/${pod}`
      makeTree(fs, source, SIX_FILES)
      const before = groups(listTree(fs, source))
      const options = { source, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
      for (let turn = 0; turn < TURNS; turn++) {
        const directory = node.podDirectory(pod)
        expect(await node.call('mount', directory, JSON.stringify(options))).toEqual({ status: 'Success' })
        expect(new Set(Object.values(groups(listTree(fs, directory))))).toEqual(new Set([2000]))
        expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
        expect(groups(listTree(fs, source))).toEqual(before)
      }
    }
    const collecting = collect()
    await Promise.all(Array.from({ length: PODS }, (_, index) => live(`pod-${index}`))).finally(() => {
      isOver = true
    })
    await collecting
    expect(collections).toBeGreaterThan(2)
    expect((await node.start(['gc']).ended).code).toBe(0)
    expect(fs.existsSync(`${node.state}/ownership`)).toBe(false)
    expect(node.mountState()).toEqual([])
  })
})
