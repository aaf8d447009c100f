import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CsiNode } from '../frontends/csi/node.ts'
import { NriNode, replaced } from '../frontends/nri/node.ts'
import { freeze, makeFileSystem } from '../helpers/frozen-volume.ts'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { readProcessState } from '../helpers/hanging.ts'
import { compileHolder, finishWithin, lockDirectory } from '../helpers/held-directory.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { measureEachProcess } from '../helpers/memory.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe('cc', 'mkfs.ext4', 'fsfreeze')
const GROUP_ON_DISK = 500
const GROUP = 2000
/** Seconds, of helperTimeoutSeconds. */
const PATIENCE = 12
/** Seconds: a refusal within two, and the time of a call on a busy machine. */
const AT_ONCE = 10
const IN_TIME = PATIENCE + 12
const WALK = { ownership: 'walk', 'kubernetes.io/fsGroup': String(GROUP), fsGroupChangePolicy: 'Always' }
const MAP = { ownership: 'idmap', 'kubernetes.io/fsGroup': String(GROUP), setGid: 'root' }
const ASKS = { 'modekeep/group': String(GROUP), 'modekeep/set-gid': 'root' }
/** csi.proto: VolumeCapability.AccessMode.Mode SINGLE_NODE_SINGLE_WRITER */
const SINGLE_WRITER = 6
const hasBit = (path: string) => (fs.statSync(path).mode & 0o2000) !== 0
/** Waits in the kernel. */
const isStuck = (pid: number) => readProcessState(pid) === 'D'

/** Calls of kubelet and commands of a person on a node with a volume and another one. */
class VolumeNode {
  readonly node: NriNode
  readonly data: string
  readonly other: string

  constructor() {
    this.node = new NriNode()
    onTestFinished(() => this.node.end())
    const { top } = this.node
    this.data = `${this.node.volumes}/data`
    this.other = `${this.node.volumes}/other`
    for (const volume of [this.data, this.other])
      makeFileSystem(`${top}/${volume.split('/').at(-1)}.image`, volume, GROUP_ON_DISK)
    const allow = [{ sources: [`${this.node.volumes}/*`], setGid: 'root', systemGroups: true }]
    this.node.configure({ helperTimeoutSeconds: PATIENCE, allow, map: [{ setGid: 'root' }] })
  }

  mount(pod: string, options: Record<string, string>) {
    return this.node.call('mount', this.node.podDirectory(pod), JSON.stringify(options))
  }

  /** A person's command, while the test goes on. */
  async byHand(...args: string[]): Promise<{ error?: string; outcome?: string }> {
    const { text } = await this.node.start([...args, '--json']).ended
    return JSON.parse(text)
  }

  /** A worker of the runtime's plugin that maps the volume and that no plugin ends. */
  startWorker(): number {
    const source = this.node.publish(1, this.data)
    const child = spawn(BINARY, ['nri-worker'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { MODEKEEP_CONFIG: `${this.node.top}/config.json` },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const clone = {
      volume: 'data',
      destination: '/data',
      source,
      options: ['rbind', 'rw'],
      group: GROUP,
      requestedBy: '',
    }
    const order = {
      container: 'c'.repeat(64),
      containerName: 'app',
      sandbox: 's',
      pod: { namespace: 'shop', name: 'web-0', uid: this.node.uid(1) },
      hasUserNamespace: false,
      kubeletDir: this.node.kubelet,
      clones: [{ ...clone, isOwn: false, grants: [{ fsTypes: ['ext4'], setGid: 'root' }], setGid: 'requested' }],
      isOptional: false,
    }
    child.stdin?.write(`${JSON.stringify({ do: 'attach', request: order })}\n`)
    return child.pid ?? expect.unreachable()
  }

  async isRefusedEverywhere(pid: number): Promise<void> {
    const named = expect.stringMatching(new RegExp(`process ${pid} `))
    const walked = () => this.mount('a', { ...WALK, source: this.data })
    expect(await finishWithin(AT_ONCE, walked)).toEqual({ status: 'Failure', message: named })
    const mapped = () => this.mount('b', { ...MAP, source: this.data })
    expect(await finishWithin(AT_ONCE, mapped)).toEqual({ status: 'Failure', message: named })
    expect(await finishWithin(AT_ONCE, () => this.byHand('apply', this.data, '--fsgroup', '3000'))).toMatchObject({
      error: named,
    })
    expect(await finishWithin(AT_ONCE, () => this.mount('c', { ...MAP, source: this.other }))).toEqual({
      status: 'Success',
    })
    await finishWithin(IN_TIME, () => this.byHand('gc'))
    await finishWithin(IN_TIME, () => this.byHand('heal'))
    await finishWithin(IN_TIME, () => this.byHand('status'))
  }
}

describe.skipIf(skipReason !== '')(
  addSkipReason('an NRI worker that waits for the root of a volume', skipReason),
  () => {
    it('has other calls for its volume refused with its process id, and no call for another volume', async (context) => {
      const holder = compileHolder(context)
      const volumes = new VolumeNode()
      const { data } = volumes
      const release = await lockDirectory(holder, data)
      const pid = volumes.startWorker()
      await expect.poll(() => isStuck(pid), { timeout: 10_000 }).toBe(true)
      await volumes.isRefusedEverywhere(pid)
      await release()
      await expect
        .poll(() => volumes.mount('a', { ...MAP, source: data }), { timeout: 10_000 })
        .toEqual({ status: 'Success' })
      expect(hasBit(data)).toBe(true)
    })

    it('has other calls refused also after the plugin killed it, until it ends', async () => {
      const volumes = new VolumeNode()
      const { node, data } = volumes
      const end = await node.serve()
      const source = node.publish(1, data)
      const thaw = freeze(data)
      const { status } = await end.call('CreateContainer', 'ContainerRequest', node.request(1, ASKS, source))
      expect(status?.message).toContain('the making of the mapped mount took long')
      const [pid = 0, ...others] = measureEachProcess(node.top, 'nri-worker')
        .map(({ pid }) => pid)
        .filter(isStuck)
      expect(others).toEqual([])
      await volumes.isRefusedEverywhere(pid)
      thaw()
      await expect.poll(() => hasBit(data), { timeout: 10_000 }).toBe(false)
      expect(await volumes.mount('a', { ...WALK, source: data })).toEqual({ status: 'Success' })
      expect(fs.statSync(data).gid).toBe(GROUP)
    })
  },
)

describe.skipIf(skipReason !== '')(
  addSkipReason('a FlexVolume call that waits for the root of a volume', skipReason),
  () => {
    it('makes the plugin refuse a container with its process id, before and after its deadline', async () => {
      const volumes = new VolumeNode()
      const { node, data, other } = volumes
      const end = await node.serve()
      const create = async (pod: number, source: string, name: string) => {
        const request = node.request(pod, ASKS, node.publish(pod, source, undefined, name))
        const answer = await end.call('CreateContainer', 'ContainerRequest', request)
        return answer.status?.message ?? String(replaced(answer).length)
      }
      expect(await create(1, other, 'pvc-1')).toBe('1')
      const thaw = freeze(data)
      const first = finishWithin(IN_TIME, () => volumes.mount('a', { ...MAP, source: data }))
      await setTimeout(2000)
      const before = await finishWithin(AT_ONCE, () => create(2, data, 'pvc-2'))
      const { message = '' } = await first
      const [, pid = ''] = /process (\d+), which worked on the volume, was given up/.exec(message) ?? []
      expect(before).toContain(`process ${pid} `)
      expect(await finishWithin(AT_ONCE, () => create(3, data, 'pvc-3'))).toContain(`process ${pid} `)
      thaw()
    })
  },
)

/** A CSI server, and a volume on a file system of its own whose root may get the set-gid bit. */
async function serveVolume(): Promise<{ node: CsiNode; data: string }> {
  const node = new CsiNode()
  onTestFinished(() => node.end())
  const data = `${node.volumes}/data`
  makeFileSystem(`${node.top}/image`, data, GROUP_ON_DISK)
  node.configure({
    helperTimeoutSeconds: PATIENCE,
    allow: [{ sources: [`${node.volumes}/*`], setGid: 'root', systemGroups: true }],
  })
  await node.serve()
  return { node, data }
}

describe.skipIf(skipReason !== '')(
  addSkipReason('a killed process that waits for the root of a volume', skipReason),
  () => {
    it('keeps other CSI workers from changing the volume until it has ended', async () => {
      const { node, data } = await serveVolume()
      const thaw = freeze(data)
      const publish = (pod: number) =>
        node.publish(pod, data, { attributes: { ownership: 'idmap', setGid: 'root' }, group: String(GROUP) })
      const first = await finishWithin(IN_TIME, () => publish(1))
      const [, pid = ''] = /process (\d+), which worked on the volume, was given up/.exec(JSON.stringify(first)) ?? []
      expect(isStuck(Number(pid))).toBe(true)
      for (const pod of [1, 2])
        expect(JSON.stringify(await finishWithin(AT_ONCE, () => publish(pod)))).toMatch(`process ${pid} `)
      expect(node.workers().filter(isStuck)).toEqual([Number(pid)])
      thaw()
      await expect.poll(() => node.workers().filter(isStuck), { timeout: 10_000 }).toEqual([])
      expect(await publish(2)).toMatchObject({ code: 'OK' })
      expect(hasBit(data)).toBe(true)
      expect(await node.unpublish(2)).toMatchObject({ code: 'OK' })
      expect(hasBit(data)).toBe(false)
    })

    it('makes another publication of the volume fail while it waits', async () => {
      const { node, data } = await serveVolume()
      const thaw = freeze(data)
      const wish = { attributes: { ownership: 'idmap', setGid: 'root' }, group: String(GROUP), mode: SINGLE_WRITER }
      const publish = (pod: number) => node.publish(pod, data, { ...wish, volumeId: 'pv' })
      const first = publish(1)
      await expect.poll(() => node.workers().filter(isStuck), { timeout: 5000 }).toHaveLength(1)
      const [pid] = node.workers().filter(isStuck)
      expect(JSON.stringify(await finishWithin(AT_ONCE, () => publish(2)))).toMatch(`process ${pid} `)
      thaw()
      expect(await first).toMatchObject({ code: 'OK' })
    })

    it('keeps other FlexVolume calls from changing the volume until it has ended', async () => {
      const node = new FuseNode([])
      const data = `${node.volumes}/data`
      makeFileSystem(`${node.top}/image`, data, GROUP_ON_DISK)
      node.configure({
        helperTimeoutSeconds: PATIENCE,
        allow: [{ sources: [`${node.volumes}/*`], fsTypes: ['bind'], setGid: 'root', systemGroups: true }],
      })
      const thaw = freeze(data)
      const first = await finishWithin(IN_TIME, () => node.mount('a', { ...MAP, source: data }))
      const [, pid = ''] = /process (\d+), which worked on the volume, was given up/.exec(first.message ?? '') ?? []
      expect(isStuck(Number(pid))).toBe(true)
      for (const [pod, options] of [
        ['a', MAP],
        ['b', MAP],
        ['c', WALK],
      ] as const) {
        const answer = await finishWithin(AT_ONCE, () => node.mount(pod, { ...options, source: data }))
        expect(answer).toEqual({ status: 'Failure', message: expect.stringContaining(`process ${pid} `) })
      }
      thaw()
      await expect.poll(() => isStuck(Number(pid)), { timeout: 10_000 }).toBe(false)
      expect(await node.mount('b', { ...MAP, source: data })).toEqual({ status: 'Success' })
      expect(await node.unmount('b')).toEqual({ status: 'Success' })
      expect(hasBit(data)).toBe(false)
    })
  },
)

describe.skipIf(skipReason !== '')(addSkipReason('roots of several volumes that block calls', skipReason), () => {
  it("delay another pod's unmount by one wait at most, and at most four of a namespace are waited for", async () => {
    const node = new FuseNode([])
    const rule = { sources: [`${node.volumes}/*`], fsTypes: ['bind'], setGid: 'root', systemGroups: true }
    node.configure({ helperTimeoutSeconds: PATIENCE, allow: [rule] })
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const other = `${node.volumes}/other`
    const optionsOf = (source: string, namespace: string) => ({
      ...MAP,
      source,
      'kubernetes.io/pod.namespace': namespace,
      'kubernetes.io/pod.name': 'web',
    })
    for (const name of names) {
      makeFileSystem(`${node.top}/${name}.image`, `${node.volumes}/${name}`, GROUP_ON_DISK)
      expect(await node.mount(name, optionsOf(`${node.volumes}/${name}`, 'shop'))).toEqual({ status: 'Success' })
    }
    makeFileSystem(`${node.top}/other.image`, other, GROUP_ON_DISK)
    expect(await node.mount('other', optionsOf(other, 'farm'))).toEqual({ status: 'Success' })
    const thawed = names.map((name) => freeze(`${node.volumes}/${name}`))
    // As if the pods' mounts had gone without an unmount: what is left is done by calls of others.
    for (const name of names) {
      execFileSync('umount', ['--lazy', node.podDirectory(name)])
      fs.rmSync(`${node.state}/mounts`, { recursive: true, force: true })
    }
    expect(await finishWithin(AT_ONCE + 2, () => node.unmount('other'))).toEqual({ status: 'Success' })
    for (let more = 0; more < 6; more++) {
      expect(await node.mount('other', optionsOf(other, 'farm'))).toEqual({ status: 'Success' })
      expect(await finishWithin(AT_ONCE + 2, () => node.unmount('other'))).toEqual({ status: 'Success' })
    }
    expect(stuckErrands(node.top)).toBe(4)
    for (const thaw of thawed) thaw()
    await expect.poll(() => stuckErrands(node.top), { timeout: 10_000 }).toBe(0)
    expect(node.byHand<{ items: unknown[] }>('gc').items).toBeDefined()
    expect(names.map((name) => hasBit(`${node.volumes}/${name}`))).toEqual(names.map(() => false))
  })
})

/** Isolated processes of a node that wait in the kernel. */
function stuckErrands(top: string): number {
  const locks = fs.readdirSync(`${top}/state/ownership`, { recursive: true, encoding: 'utf8' })
  const pids = locks
    .filter((name) => name.endsWith('/walker.lock'))
    .map((name) => Number(fs.readFileSync(`${top}/state/ownership/${name}`, 'utf8')))
  return pids.filter((pid) => pid > 0 && isStuck(pid)).length
}
