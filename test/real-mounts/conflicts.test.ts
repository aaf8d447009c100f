import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { mountStorage } from '../crash/volume.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

const suiteTitle = `two pods that request one volume${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

const FILE_SYSTEMS = sized<readonly ('tmpfs' | 'ext4')[]>(['ext4'], ['tmpfs', 'ext4'])
const TEST_ROUNDS = sized(1, 2, 5)

describe.skipIf(!isRoot).each(FILE_SYSTEMS)(`${suiteTitle}, on %s`, (fsType) => {
  // Enough for two calls to be at it at once.
  const FILES = 300
  const SPECS = Array.from({ length: FILES }, (_, n) => [`file f${n} 0640 5`, `file sub/f${n} 0640 6`]).flat()

  function arrange() {
    const node = new BinaryNode()
    mountStorage(node, fsType)
    const data = `${node.volumes}/data`
    makeTree(fs, data, SPECS)
    const original = groups(listTree(fs, data))
    return {
      node,
      data,
      /** What is not as it was at first. */
      changed(): string[] {
        const now = groups(listTree(fs, data))
        const paths = Object.keys(now).filter((path) => now[path] !== original[path])
        return paths.slice(0, 5).map((path) => `${path}: ${original[path]} is ${now[path]}, of ${paths.length}`)
      },
      groups: () => [...new Set(Object.values(groups(listTree(fs, data))))].sort((a, b) => a - b),
      /** The same directory through another path. */
      bind(from: string, to: string): string {
        fs.mkdirSync(`${node.volumes}/${to}`)
        execFileSync('mount', ['--bind', from, `${node.volumes}/${to}`])
        onTestFinished(() => void execFileSync('umount', ['--lazy', `${node.volumes}/${to}`]))
        return `${node.volumes}/${to}`
      },
      mount(pod: string, source: string, group: number, more: Record<string, string> = {}) {
        const names = { 'kubernetes.io/pod.name': `pod-${pod}`, 'kubernetes.io/pod.namespace': 'shop' }
        const asked = { source, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': String(group) }
        return node.call('mount', node.podDirectory(pod), JSON.stringify({ ...asked, ...names, ...more }))
      },
      async unmount(pod: string) {
        expect(await node.call('unmount', node.podDirectory(pod))).toEqual({ status: 'Success' })
        expect(node.layers(pod)).toEqual([])
      },
    }
  }
  type Arranged = ReturnType<typeof arrange>

  const SUCCESS = { status: 'Success' }

  function expectRefused(
    { node }: Arranged,
    answer: { status: string; message?: string },
    pod: string,
    holder: string,
  ) {
    expect(answer.status).toBe('Failure')
    expect(answer.message).toContain(`pod shop/pod-${holder} uses `)
    expect(answer.message).toContain(node.podDirectory(holder))
    expect(node.layers(pod)).toEqual([])
  }

  it("at the same time, with two groups: one succeeds, and the other's message names its user", async () => {
    const on = arrange()
    const [a, b] = await Promise.all([on.mount('a', on.data, 2000), on.mount('b', on.data, 3000)])
    const won = a.status === 'Success' ? 'a' : 'b'
    const lost = won === 'a' ? 'b' : 'a'
    expect(won === 'a' ? a : b).toEqual(SUCCESS)
    expectRefused(on, won === 'a' ? b : a, lost, won)
    expect(on.groups()).toEqual([won === 'a' ? 2000 : 3000])
    await on.unmount(won)
    expect(on.changed()).toEqual([])
    expect(await on.mount(lost, on.data, won === 'a' ? 3000 : 2000)).toEqual(SUCCESS)
    await on.unmount(lost)
    expect(on.changed()).toEqual([])
  })

  it('by two paths: recognized by identity, refused to a second group, shared with one, restored after the last', async () => {
    const on = arrange()
    const alias = on.bind(on.data, 'alias')
    expect(await on.mount('a', on.data, 2000)).toEqual(SUCCESS)
    expectRefused(on, await on.mount('b', alias, 3000), 'b', 'a')
    expect(await on.mount('b', alias, 2000)).toEqual(SUCCESS)
    expect(on.groups()).toEqual([2000])
    await on.unmount('a')
    expect(on.groups()).toEqual([2000])
    await on.unmount('b')
    expect(on.changed()).toEqual([])
  })

  it.each([
    ['the inner by another path of the outer', (on: Arranged) => `${on.bind(on.data, 'alias')}/sub`],
    ['the inner by its own path', (on: Arranged) => on.bind(`${on.data}/sub`, 'alone')],
  ])('one inside the other, %s: refused to a second group, in either order', async (_, innerOf) => {
    const on = arrange()
    const inner = innerOf(on)
    expect(await on.mount('a', on.data, 2000)).toEqual(SUCCESS)
    expectRefused(on, await on.mount('b', inner, 3000), 'b', 'a')
    expect(on.groups()).toEqual([2000])
    await on.unmount('a')
    expect(on.changed()).toEqual([])
    expect(await on.mount('b', inner, 3000)).toEqual(SUCCESS)
    expectRefused(on, await on.mount('a', on.data, 2000), 'a', 'b')
    await on.unmount('b')
    expect(on.changed()).toEqual([])
  })

  it('one inside the other, with one group: both succeed, and the first state returns after the last', async () => {
    for (const [first, second] of [
      ['data', 'data/sub'],
      ['data/sub', 'data'],
    ]) {
      const on = arrange()
      expect(await on.mount('a', `${on.node.volumes}/${first}`, 2000)).toEqual(SUCCESS)
      expect(await on.mount('b', `${on.node.volumes}/${second}`, 2000)).toEqual(SUCCESS)
      expect(on.groups()).toEqual([2000])
      await on.unmount('a')
      await on.unmount('b')
      // The restore that was pending when the first went, while the second was there, its next unmount runs.
      expect(await on.mount('a', `${on.node.volumes}/${first}`, 2000)).toEqual(SUCCESS)
      await on.unmount('a')
      expect(on.changed()).toEqual([])
    }
  })

  it('one inside the other, at the same time, with two groups: one succeeds, and the first state returns', async () => {
    for (let round = 0; round < TEST_ROUNDS; round++) {
      const on = arrange()
      const answers = await Promise.all([on.mount('a', on.data, 2000), on.mount('b', `${on.data}/sub`, 3000)])
      expect(answers.filter(({ status }) => status === 'Success')).toHaveLength(1)
      const won = answers[0]?.status === 'Success' ? 'a' : 'b'
      const lost = won === 'a' ? 'b' : 'a'
      const refused = answers[won === 'a' ? 1 : 0]
      if (refused) expectRefused(on, refused, lost, won)
      expect(on.groups()).toEqual(won === 'a' ? [2000] : [0, 5, 3000])
      await on.unmount(won)
      expect(on.changed()).toEqual([])
    }
  })

  it('one inside the other, at the same time, with one group: both succeed, and the first state returns', async () => {
    for (let round = 0; round < TEST_ROUNDS; round++) {
      const on = arrange()
      const answers = await Promise.all([on.mount('a', on.data, 2000), on.mount('b', `${on.data}/sub`, 2000)])
      expect(answers).toEqual([SUCCESS, SUCCESS])
      expect(on.groups()).toEqual([2000])
      await Promise.all([on.unmount('b'), on.unmount('a')])
      for (const source of [on.data, `${on.data}/sub`]) {
        expect(await on.mount('a', source, 2000)).toEqual(SUCCESS)
        await on.unmount('a')
      }
      expect(on.changed()).toEqual([])
    }
  })

  it('a volume that was moved into another one conflicts with it by its current location', async () => {
    const on = arrange()
    fs.mkdirSync(`${on.node.volumes}/other`)
    expect(await on.mount('b', `${on.data}/sub`, 3000)).toEqual(SUCCESS)
    fs.renameSync(`${on.data}/sub`, `${on.node.volumes}/other/sub`)
    expectRefused(on, await on.mount('a', `${on.node.volumes}/other`, 2000), 'a', 'b')
    expect(await on.mount('a', on.data, 2000)).toEqual(SUCCESS)
  })

  it('one mounted inside the other, another file system: each has its group', async () => {
    const on = arrange()
    execFileSync('mount', ['-t', 'tmpfs', 'inner', `${on.data}/sub`])
    // A new mount that hides a mount inside is refused by default.
    expect(await on.mount('a', on.data, 2000, { submounts: 'hide' })).toMatchObject(SUCCESS)
    expect(await on.mount('b', `${on.data}/sub`, 3000)).toEqual(SUCCESS)
    expect(on.groups()).toEqual([2000, 3000])
    await on.unmount('a')
    expect(fs.statSync(`${on.data}/sub`).gid).toBe(3000)
    await on.unmount('b')
    execFileSync('umount', [`${on.data}/sub`])
    expect(on.changed()).toEqual([])
  })

  it('one inside the other, during a restore of the outer: each runs in turn, and the first state returns', async () => {
    for (let round = 0; round < TEST_ROUNDS; round++) {
      const on = arrange()
      expect(await on.mount('a', on.data, 2000)).toEqual(SUCCESS)
      const [, b] = await Promise.all([on.unmount('a'), on.mount('b', `${on.data}/sub`, 3000)])
      if (b.status === 'Success') await on.unmount('b')
      else expectRefused(on, b, 'b', 'a')
      // What was pending while the other was there.
      for (const [source, group] of [
        [`${on.data}/sub`, 3000],
        [on.data, 2000],
      ] as const) {
        expect(await on.mount('c', source, group)).toEqual(SUCCESS)
        await on.unmount('c')
      }
      expect(on.changed()).toEqual([])
    }
  })

  it('a pod and a manual command at the same time: one after the other, or refused', async () => {
    for (let round = 0; round < TEST_ROUNDS; round++) {
      const on = arrange()
      const byHand = on.node.start(['apply', `${on.data}/sub`, '--fsgroup', '3000']).ended
      const [applied, mounted] = await Promise.all([byHand, on.mount('a', on.data, 2000)])
      expect(mounted).toEqual(SUCCESS)
      if (applied.code !== 0) expect(applied.text).toContain('pod shop/pod-a uses')
      expect(on.groups()).toEqual([2000])
      await on.unmount('a')
      const restored = await on.node.start(['restore', `${on.data}/sub`]).ended
      expect(restored.code).toBe(0)
      expect(on.changed()).toEqual([])
    }
  })

  it('one of them killed during its walk: it blocks nothing any more, and the first state returns', async () => {
    const on = arrange()
    const options = { source: on.data, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    let reserved = false
    for (let tries = 0; !reserved && tries < 20; tries++) {
      const { child, ended } = on.node.start(['mount', on.node.podDirectory('a'), JSON.stringify(options)])
      while (!reserved && child.exitCode === null) {
        await new Promise((resolve) => setImmediate(resolve))
        reserved = fs.globSync(`${on.node.state}/reservations/*.json`).length > 0
      }
      child.kill('SIGKILL')
      reserved &&= (await ended).code === null
      if (!reserved) await on.unmount('a')
    }
    expect(fs.globSync(`${on.node.state}/reservations/*.json`)).toHaveLength(1)
    expect(await on.mount('b', `${on.data}/sub`, 3000)).toEqual(SUCCESS)
    await on.unmount('b')
    expect(await on.mount('a', on.data, 2000)).toEqual(SUCCESS)
    await on.unmount('a')
    expect(on.changed()).toEqual([])
  })
})
