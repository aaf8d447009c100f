import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

describe.skipIf(!isRoot)(`concurrent calls${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`, () => {
  it('50 concurrent identical mounts succeed, with one mount and one walk', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    makeTree(
      fs,
      source,
      Array.from({ length: 500 }, (_, n) => `file d${n % 7}/f${n} 0640`),
    )
    const options = JSON.stringify({ source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    const directory = node.podDirectory('a')
    const replies = await Promise.all(Array.from({ length: 50 }, () => node.call('mount', directory, options)))
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set(['Success']))
    expect(node.layers('a')).toHaveLength(1)
    // A walk that takes more than a second also tells how far it is.
    const lines = node.logLines().filter(({ outcome }) => outcome !== undefined)
    expect(lines).toHaveLength(50)
    expect(lines.filter(({ inodes }) => inodes !== undefined)).toHaveLength(1)
    expect(lines.filter(({ decision }) => decision === 'ready')).toHaveLength(49)
    expect(new Set(Object.values(groups(listTree(fs, source))))).toEqual(new Set([2000]))
    expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
    expect(node.layers('a')).toEqual([])
  })

  it('20 concurrent pods on one volume share one walk and have one mount each', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    makeTree(
      fs,
      source,
      Array.from({ length: 500 }, (_, n) => `file f${n} 0640`),
    )
    const options = JSON.stringify({ source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    const pods = Array.from({ length: 20 }, (_, n) => `pod-${n}`)
    const mounted = await Promise.all(pods.map((pod) => node.call('mount', node.podDirectory(pod), options)))
    expect(mounted).toEqual(pods.map(() => ({ status: 'Success' })))
    for (const pod of pods) expect(node.layers(pod)).toHaveLength(1)
    expect(node.logLines().filter(({ inodes }) => inodes !== undefined)).toHaveLength(1)
    await Promise.all(pods.map((pod) => node.call('unmount', node.podDirectory(pod))))
    expect(node.mountState()).toEqual([])
  })

  it('concurrent mounts and unmounts of one directory leave it either completely mounted or completely unmounted', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    makeTree(fs, source, ['file a 0640'])
    const options = JSON.stringify({ source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    const directory = node.podDirectory('a')
    const calls = Array.from({ length: 30 }, (_, n) =>
      n % 2 ? node.call('unmount', directory) : node.call('mount', directory, options),
    )
    expect((await Promise.all(calls)).every(({ status }) => status === 'Success')).toBe(true)
    expect(node.layers('a').length).toBeLessThanOrEqual(1)
    expect(node.mountState()).toHaveLength(node.layers('a').length)
    await node.call('unmount', directory)
    expect(node.mountState()).toEqual([])
  })
})
