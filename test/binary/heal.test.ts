import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { write } from '../helpers/atomic-writer.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { createKubeletPod } from '../helpers/kubelet-pod.ts'
import { isRoot } from '../helpers/stage.ts'

const title = `heal and status${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  async function mounted(node: BinaryNode): Promise<{ source: string; directory: string }> {
    const source = `${node.volumes}/config`
    fs.mkdirSync(source)
    write(source, { name: 'one' })
    const directory = node.podDirectory('a')
    const options = { source, subPath: 'name', 'kubernetes.io/pod.name': 'web', 'kubernetes.io/pod.namespace': 'shop' }
    expect(await node.call('mount', directory, JSON.stringify(options))).toEqual({ status: 'Success' })
    return { source, directory }
  }

  async function json(node: BinaryNode, ...args: string[]): Promise<Record<string, unknown>> {
    return JSON.parse((await node.start([...args, '--json']).ended).text)
  }

  it('status reports an updated source as stale, and as healthy after heal has repaired the mount', async () => {
    const node = new BinaryNode()
    const { source, directory } = await mounted(node)
    expect(await json(node, 'status')).toMatchObject({ mounts: [{ directory, pod: 'shop/web', state: 'healthy' }] })
    write(source, { name: 'two' })
    expect(await json(node, 'status')).toMatchObject({ mounts: [{ directory, state: 'stale' }] })
    expect(await json(node, 'heal', '--dry-run')).toMatchObject({
      isDry: true,
      mounts: [{ state: 'stale', action: 'replaced' }],
    })
    expect(fs.readFileSync(directory, 'utf8')).toBe('one')
    expect(await json(node, 'heal')).toMatchObject({
      isDry: false,
      mounts: [{ state: 'stale', action: 'replaced' }],
      subPaths: [],
    })
    expect(fs.readFileSync(directory, 'utf8')).toBe('two')
    expect(await json(node, 'heal')).toMatchObject({ mounts: [{ state: 'healthy', action: 'none' }] })
    expect((await node.start(['status']).ended).text).toContain('shop/web')
    expect(node.layers('a')).toHaveLength(1)
  })

  it('heal fails with the reason if a mount cannot be repaired', async () => {
    const node = new BinaryNode()
    const { source, directory } = await mounted(node)
    fs.renameSync(source, `${source}-away`)
    const { text, code } = await node.start(['heal']).ended
    expect(code).toBe(1)
    expect(text).toContain('does not exist on this node')
    expect(text).toContain('modekeep: not every mount could be repaired')
    expect(fs.readFileSync(directory, 'utf8')).toBe('one')
  })

  it("heal --kubelet-subpaths repairs kubelet's subPath mounts of directories that an update deleted", async () => {
    const node = new BinaryNode()
    const pod = createKubeletPod(node.top)
    const volume = pod.volume('configmap', 'config', 'disk')
    write(volume, { name: 'one' })
    const bound = pod.bind(volume, 'name')
    write(volume, { name: 'two' })
    const args = ['heal', '--kubelet-subpaths', '--kubelet-dir', pod.kubeletDir]
    const about = { mountPoint: bound, source: `${volume}/name` }
    expect(await json(node, ...args, '--dry-run')).toMatchObject({ subPaths: [{ ...about, action: 'replaced' }] })
    expect(fs.readFileSync(bound, 'utf8')).toBe('one')
    expect((await node.start(args).ended).text).toMatch(
      /^0 of 0 mounts healthy\nstale {2}replaced +\/.*\/volume-subpaths\//,
    )
    expect(fs.readFileSync(bound, 'utf8')).toBe('two')
    expect(await json(node, ...args)).toEqual({
      apiVersion: 'modekeep/v1',
      kind: 'Heal',
      isDry: false,
      mounts: [],
      subPaths: [],
      containers: [],
    })
    const missing = await node.start(['heal', '--kubelet-subpaths', '--kubelet-dir', `${node.top}/none`]).ended
    expect(missing).toMatchObject({ code: 1, text: expect.stringContaining('/none" does not exist: name it with') })
  })

  it('heal --watch uses the current configuration after a change of the file', async () => {
    const node = new BinaryNode()
    const file = `${node.top}/config.json`
    const config = JSON.parse(fs.readFileSync(file, 'utf8'))
    fs.writeFileSync(file, JSON.stringify({ ...config, allow: [{ sources: ['/elsewhere/*'] }] }))
    const { child, ended } = watching(node)
    fs.writeFileSync(file, JSON.stringify(config))
    const { source, directory } = await mounted(node)
    write(source, { name: 'two' })
    await expect.poll(() => fs.readFileSync(directory, 'utf8'), { timeout: 600_000 }).toBe('two')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })

  it('heal --watch repairs stale and missing mounts, and ends at a signal', async () => {
    const node = new BinaryNode()
    const { source, directory } = await mounted(node)
    const { child, ended } = watching(node)
    for (let turn = 0; turn < 5; turn++) {
      write(source, { name: `turn ${turn}` })
      await expect.poll(() => fs.readFileSync(directory, 'utf8'), { timeout: 600_000 }).toBe(`turn ${turn}`)
    }
    await detach(directory)
    await expect.poll(() => node.layers('a').length, { timeout: 600_000 }).toBe(1)
    // What kubelet unmounts stays unmounted.
    expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(node.layers('a')).toEqual([])
    expect(node.mountState()).toEqual([])
  })
})

function watching(node: BinaryNode): { child: ChildProcess; ended: Promise<unknown> } {
  const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
  const child = spawn(BINARY, ['heal', '--watch', '--json'], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return { child, ended: once(child, 'close') }
}

async function detach(directory: string): Promise<void> {
  const child = spawn('umount', ['--lazy', directory], { stdio: 'inherit' })
  await once(child, 'close')
}
