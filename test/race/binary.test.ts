import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, modes } from '../helpers/tree.ts'
import { Actors } from './actors.ts'
import { makeArena } from './arena.ts'

const TEST_ROUNDS = sized(5, 20, 200)
const suiteTitle = `kubelet's calls under attack${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  it('mount and unmount, change nothing outside, and restore everything in the end', async () => {
    const node = new BinaryNode()
    const arena = makeArena(node.top)
    const options = JSON.stringify({
      source: arena.volume,
      ownership: 'walk',
      restoreOnUnmount: 'true',
      fsGroupChangePolicy: 'Always',
      'kubernetes.io/fsGroup': '2000',
    })
    const directory = node.podDirectory('a')
    const before = listTree(fs, arena.volume)
    const outside = arena.outside()
    const actors = new Actors()
    await actors.start('exchange', ...arena.swapLinks)
    await actors.start('exchange', ...arena.swapSpecials)
    await actors.start('move', ...arena.moveOut)
    for (let round = 0; round < TEST_ROUNDS; round++) {
      // Its message counts what was linked outside or replaced during the walk.
      expect(await node.call('mount', directory, options)).toMatchObject({ status: 'Success' })
      expect(node.layers('a')).toHaveLength(1)
      expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
      expect(node.layers('a')).toEqual([])
    }
    await actors.stop()
    expect(arena.outside()).toEqual(outside)
    expect(node.logLines().filter(({ level }) => level === 'error')).toEqual([])

    await node.call('mount', directory, options)
    await node.call('unmount', directory)
    const after = listTree(fs, arena.volume)
    expect(groups(after)).toEqual(groups(before))
    expect(modes(after)).toEqual(modes(before))
    expect(arena.outside()).toEqual(outside)
  })
})
