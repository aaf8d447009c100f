import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import type { HealDocument } from '../../src/cli/commands/heal.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { KubeletAside, LEFT, podOptions } from '../helpers/left-pod.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

const title = `the mount of a deleted pod${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

let kubelet: KubeletAside | undefined
afterEach(async () => {
  await kubelet?.close()
  kubelet = undefined
})

describe.skipIf(!isRoot)(title, () => {
  const volumeOf = (node: BinaryNode) => groups(listTree(fs, `${node.volumes}/data`))
  const json = async (node: BinaryNode, ...args: string[]): Promise<HealDocument> =>
    JSON.parse((await node.start([...args, '--json']).ended).text)
  const found = ({ mounts }: HealDocument) => mounts.map(({ state, action }) => [state, action])

  async function mount(node: BinaryNode, directory: string, uid: string, name = 'web-0'): Promise<void> {
    const asked = { source: `${node.volumes}/data`, ownership: 'walk', restoreOnUnmount: 'true' }
    const options = JSON.stringify({ ...asked, ...podOptions(uid, name), 'kubernetes.io/fsGroup': '2000' })
    expect(await node.call('mount', directory, options)).toEqual({ status: 'Success' })
  }

  /** A pod with a mount, and a kubelet that was started after it. */
  async function left(end = 'modekeep~fs/v', options = {}): Promise<{ node: BinaryNode; directory: string }> {
    const node = new BinaryNode()
    makeTree(fs, `${node.volumes}/data`, ['file first 0644'])
    const directory = `${node.top}/pods/${LEFT}/volumes/${end}`
    fs.mkdirSync(directory, { recursive: true })
    await mount(node, directory, LEFT)
    kubelet = await KubeletAside.start(node, options)
    return { node, directory }
  }

  it.each(['modekeep~fs/v', 'kubernetes.io~csi/v/mount'])(
    'is reported by status and doctor, heal unmounts and restores it and removes its directory: %s',
    async (end) => {
      const { node, directory } = await left(end)
      expect(volumeOf(node)).toEqual({ '.': 2000, first: 2000 })
      const status = (await node.start(['status']).ended).text
      expect(status).toContain('orphaned')
      expect(status).toMatch(/its pod is gone without an unmount: .*: modekeep heal unmounts it/)
      expect((await node.start(['doctor']).ended).text).toContain(`${directory} is orphaned: its pod is gone`)
      expect((await node.start(['status', '--prometheus']).ended).text).toMatch(
        /modekeep_mounts\{.*state="orphaned"\} 1/,
      )
      expect(fs.readdirSync(directory)).toEqual(['first'])
      const started = performance.now()
      expect(found(await json(node, 'heal'))).toEqual([['orphaned', 'unmounted']])
      expect(performance.now() - started).toBeGreaterThan(5000)
      expect(volumeOf(node)).toEqual({ '.': 0, first: 0 })
      expect(fs.existsSync(directory)).toBe(false)
      expect(node.mountState()).toEqual([])
      expect(found(await json(node, 'heal'))).toEqual([])
    },
  )

  it('is kept while the pod has a process or logs', async () => {
    const { node, directory } = await left()
    const container = await kubelet?.run(LEFT)
    expect(found(await json(node, 'heal'))).toEqual([['healthy', 'none']])
    container?.kill('SIGKILL')
    kubelet?.addLogs('default', 'web-0', LEFT)
    const asked = kubelet?.resources?.asked
    expect(found(await json(node, 'heal'))).toEqual([['healthy', 'none']])
    expect(kubelet?.resources?.asked).toBe(asked)
    expect(fs.readdirSync(directory)).toEqual(['first'])
  })

  it('is kept if this kubelet has seen the pod, as kubelet then unmounts the volume itself', async () => {
    const { node } = await left()
    await kubelet?.listen()
    const directory = node.podDirectory('33333333-3333-4333-8333-333333333333')
    await mount(node, directory, '33333333-3333-4333-8333-333333333333', 'web-1')
    const { mounts } = await json(node, 'heal')
    expect(mounts.find((one) => one.directory === directory)).toMatchObject({ state: 'healthy', action: 'none' })
    expect(fs.readdirSync(directory)).toEqual(['first'])
    // The other one has it still.
    expect(volumeOf(node)).toEqual({ '.': 2000, first: 2000 })
  })

  it('is kept while kubelet does not respond, and heal still meets its deadline', async () => {
    const { node, directory } = await left('modekeep~fs/v', { isSilent: true })
    const started = performance.now()
    const [finding] = (await json(node, 'heal')).mounts
    expectInTime(performance.now() - started, 10_000)
    expect(finding).toMatchObject({ state: 'orphaned', action: 'none' })
    expect(finding?.reason).toMatch(/kubelet does not say which pods it has .*Deadline exceeded.*restart kubelet/i)
    expect(fs.readdirSync(directory)).toEqual(['first'])
  })

  it('is kept while kubelet lists no pod of the API server, and removed once kubelet lists one', async () => {
    const { node, directory } = await left()
    if (kubelet?.resources) kubelet.resources.pods = ['kube-system/etcd-node']
    const [finding] = (await json(node, 'heal')).mounts
    expect(finding).toMatchObject({ state: 'orphaned', action: 'none' })
    expect(finding?.reason).toContain('kubelet lists no running pod of the API server')
    expect(fs.readdirSync(directory)).toEqual(['first'])
    if (kubelet?.resources) kubelet.resources.pods = ['kube-system/proxy']
    expect(found(await json(node, 'heal'))).toEqual([['orphaned', 'unmounted']])
  })

  it('is unmounted by heal --watch without an event', async () => {
    const { node, directory } = await left()
    const { child, ended } = node.start(['heal', '--watch', '--json'])
    const until = performance.now() + 40_000
    while (fs.existsSync(directory) && performance.now() < until) await new Promise((next) => setTimeout(next, 100))
    child.kill('SIGTERM')
    const told = (await ended).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(fs.existsSync(directory)).toBe(false)
    expect(told.flatMap((document) => found(document))).toEqual([
      ['in progress', 'none'],
      ['orphaned', 'unmounted'],
    ])
    expect(volumeOf(node)).toEqual({ '.': 0, first: 0 })
  })
})
