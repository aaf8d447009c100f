import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'

const FILES = 1500
/** Kills that found the call still at work. */
const KILLS = sized(2, 12, 150)
/** Moments of a call, evenly spread; one after the other, but not in order. */
const MOMENTS = 12
const moment = (round: number) => (((round * 5) % MOMENTS) + 0.5) / MOMENTS
const title = `a call killed by SIGKILL${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  const specs = Array.from(
    { length: FILES },
    (_, n) => `file d${n % 20}/f${n} ${n % 9 ? '0640' : '4750'} ${n % 3 ? 0 : 77}`,
  )

  function arrange() {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    makeTree(fs, source, specs)
    const options = JSON.stringify({
      source,
      ownership: 'walk',
      'kubernetes.io/fsGroup': '2000',
      restoreOnUnmount: 'true',
    })
    const listed = listTree(fs, source)
    const original = { modes: modes(listed), groups: groups(listed) }
    return { node, source, options, original, directory: node.podDirectory('a') }
  }

  /** Milliseconds. */
  async function timed(call: () => Promise<unknown>): Promise<number> {
    const start = performance.now()
    await call()
    return performance.now() - start
  }

  /** Starts a call, kills it after `delay` milliseconds unless it has ended, and says whether it was killed. */
  async function killAfter(node: BinaryNode, delay: number, args: string[]): Promise<boolean> {
    const { child, ended } = node.start(args)
    await Promise.race([sleep(delay), ended])
    child.kill('SIGKILL')
    const { code } = await ended
    return code === null
  }

  it(
    'SIGKILL during a mount shows nothing or the complete volume, the next call completes, and an unmount restores every inode',
    async () => {
      const { node, source, options, original, directory } = arrange()
      const duration = await timed(() => node.call('mount', directory, options))
      await node.call('unmount', directory)
      let killed = 0
      for (let round = 0; killed < KILLS; round++) {
        if (await killAfter(node, duration * moment(round), ['mount', directory, options])) killed++
        const shown = listTree(fs, directory)
        const whole = Object.keys(shown).length > 1
        expect(node.layers('a')).toHaveLength(whole ? 1 : 0)
        if (whole) expect(new Set(Object.values(groups(shown)))).toEqual(new Set([2000]))

        if (round % 3 > 0) expect(await node.call('mount', directory, options)).toEqual({ status: 'Success' })
        if (round % 3 > 0) expect(new Set(Object.values(groups(listTree(fs, source))))).toEqual(new Set([2000]))
        expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
        expect(node.layers('a')).toEqual([])
        expect(node.mountState()).toEqual([])
        if (round % 3 === 0) await node.call('mount', directory, options)
        if (round % 3 === 0) await node.call('unmount', directory)
        const after = listTree(fs, source)
        expect(groups(after)).toEqual(original.groups)
        expect(modes(after)).toEqual(original.modes)
      }
    },
    PATIENCE,
  )

  it(
    'SIGKILL during an unmount with a restore: the next unmount completes the restore',
    async () => {
      const { node, source, options, original, directory } = arrange()
      await node.call('mount', directory, options)
      const duration = await timed(() => node.call('unmount', directory))
      let killed = 0
      for (let round = 0; killed < KILLS; round++) {
        await node.call('mount', directory, options)
        if (await killAfter(node, duration * moment(round), ['unmount', directory])) killed++
        expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
        expect(node.layers('a')).toEqual([])
        expect(node.mountState()).toEqual([])
        const after = listTree(fs, source)
        expect(groups(after)).toEqual(original.groups)
        expect(modes(after)).toEqual(original.modes)
      }
    },
    PATIENCE,
  )
})
