import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { criRuntime, infoWith } from '../frontends/nri/cri.ts'
import { makeVolume, NriNode, type ReplacedMount, replaced } from '../frontends/nri/node.ts'
import type { RuntimeEnd } from '../frontends/nri/runtime.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { MODEKEEP } from './modekeep.ts'

const cannot = fs.existsSync(MODEKEEP) ? cannotMountWith('mkfs.ext4') : 'run "npm run build"'

let node: NriNode
const ASKS = { 'modekeep/group': '2000' }
const gid = (path: string) => fs.statSync(path).gid
const records = () => fs.readdirSync(`${node.state}/nri`).filter((name) => name.endsWith('.json'))
const containers = () => {
  const told = execFileSync(MODEKEEP, ['status', '--json'], { env: { MODEKEEP_CONFIG: `${node.top}/config.json` } })
  return JSON.parse(String(told)).containers
}
const mounts = (below: string) =>
  fs
    .readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((row) => row.includes(` ${node.state}${below}`))
const standing = () => mounts('/nri/mounts/')

describe.skipIf(cannot !== '')(addSkipReason('the executable as NRI plugin', cannot), () => {
  beforeEach(() => {
    node = new NriNode()
    return () => node.end()
  })

  const create = async (end: RuntimeEnd, pod: number, annotations: Record<string, string>, source: string) =>
    end.call('CreateContainer', 'ContainerRequest', node.request(pod, annotations, source))

  it("the NRI plugin maps another driver's volume to the pod's group, and leaves nothing on the node after the pod's end", async () => {
    const volume = makeVolume(node, 3)
    const source = node.publish(1, volume)
    const end = await node.serve()
    const [mount] = replaced(await create(end, 1, ASKS, source))
    expect(mount).toMatchObject({ destination: '/data', type: 'bind', options: ['rbind', 'rprivate', 'rw'] })
    const clone = mount?.source ?? ''
    expect([gid(clone), gid(`${clone}/0/1`), gid(source), gid(`${volume}/0/1`)]).toEqual([2000, 2000, 500, 500])
    // The way there is root's alone: a container has the clone itself.
    fs.mkdirSync(`${node.top}/container`)
    execFileSync('mount', ['--bind', clone, `${node.top}/container`])
    fs.chmodSync(node.top, 0o755)
    const user = ['--reuid', '1000', '--regid', '1000', '--groups', '2000']
    execFileSync('setpriv', [...user, 'sh', '-c', `echo text > ${node.top}/container/new`])
    expect(gid(`${volume}/new`)).toBe(1000)
    expect(records()).toHaveLength(1)
    expect(containers()).toMatchObject([
      {
        pod: 'shop/pod-1',
        name: 'app',
        volume: 'pvc-1',
        destination: '/data',
        onDisk: 500,
        group: 2000,
        isMember: null,
        state: 'created',
      },
    ])

    await end.call('StateChange', 'StateChangeEvent', { event: 7, ...node.request(1, ASKS, source) })
    await expect.poll(standing).toEqual([])
    expect(gid(`${node.top}/container/0/1`)).toBe(2000)
    expect(records()).toHaveLength(1)
    await end.call('StopContainer', 'ContainerRequest', node.request(1, ASKS, source))
    await expect.poll(records).toEqual([])
    expect(mounts('/nri/mounts ')).toHaveLength(1)
    expect(await node.stop()).toBe(0)
    expect(mounts('/nri/mounts')).toEqual([])
  })

  it("the NRI plugin finds a volume if kubelet's directory is a link, and refuses the volume under another path of that directory", async () => {
    const source = node.publish(1, makeVolume(node, 1))
    const link = `${node.top}/link-to-kubelet`
    fs.symlinkSync(node.kubelet, link)
    const byLink = source.replace(node.kubelet, link)
    const end = await node.serve([], [], ['--kubelet-dir', link])
    // Runtimes follow the links before they tell a source.
    for (const told of [source, byLink]) {
      const [mount] = replaced(await create(end, 1, ASKS, told))
      expect(gid(mount?.source ?? '')).toBe(2000)
    }
    await node.stop()
    const other = await node.serve()
    expect((await create(other, 1, ASKS, byLink)).status?.message).toContain(`lies at "${byLink.slice(0, 20)}`)
  })

  it('the NRI plugin refuses a container whose group is not permitted, unless the group is optional', async () => {
    const source = node.publish(1, makeVolume(node, 1))
    node.configure({ map: [{ fsTypes: ['xfs'] }] })
    const end = await node.serve()
    const refusal =
      /annotation modekeep\/group is "2000", but volume "pvc-1" \(at "\/data"\) is on ext4, and this node's configuration \("map"\) allows xfs here/
    expect((await create(end, 1, ASKS, source)).status?.message).toMatch(refusal)
    expect(replaced(await create(end, 1, { ...ASKS, 'modekeep/group-optional': 'true' }, source))).toEqual([])
    expect((await create(end, 1, { 'modekeep/group': 'x' }, source)).status?.message).toContain('names no group')
    expect(replaced(await create(end, 1, {}, source))).toEqual([])
    expect(standing()).toEqual([])
    expect(containers()).toMatchObject([{ volume: 'pvc-1', state: 'without', reason: expect.stringContaining('ext4') }])
    await expect.poll(() => node.events.filter(({ event }) => event === 'refused')).toHaveLength(2)
    const failed = node.logLines().find(({ outcome }) => outcome === 'Failure')
    expect(failed).toMatchObject({ verb: 'map', door: 'nri', isRefused: true, containerName: 'app' })
  })

  it('the NRI plugin keeps clones of containers that still start after SIGKILL and a restart, and removes all others', async () => {
    const source = node.publish(1, makeVolume(node, 1))
    const end = await node.serve()
    const [waits, runs, unheard, gone] = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(64))
    const mounts = new Map<string | undefined, ReplacedMount[]>()
    for (const id of [waits, runs, unheard, gone]) {
      const request = node.request(1, ASKS, source, id)
      mounts.set(id, replaced(await end.call('CreateContainer', 'ContainerRequest', request)))
      expect(mounts.get(id)).toHaveLength(1)
    }
    await node.stop('SIGKILL')
    const { pod, container } = node.request(1, ASKS, source)
    const again = await node.serve(
      [pod],
      [
        { ...container, id: waits, state: 1, mounts: mounts.get(waits) },
        { ...container, id: runs, state: 3, mounts: mounts.get(runs) },
        // The runtime did not take the answer: it has the mount that it had.
        { ...container, id: unheard, state: 1 },
      ],
    )
    // One that was in the making may come a moment after it was not told of.
    await expect.poll(standing, { timeout: 20_000 }).toHaveLength(1)
    const states = () => containers().map(({ state }: { state: string }) => state)
    await expect.poll(states).toEqual(['created', 'mapped', 'without'])
    expect(records().sort()).toEqual([`${waits}.json`, `${runs}.json`, `${unheard}.json`])
    await again.call('PostStartContainer', 'ContainerRequest', { pod, container: { ...container, id: waits } })
    await expect.poll(standing).toEqual([])
  })

  it('the NRI plugin maps a part of a volume, an emptyDir, and a hostPath that a rule allows', async () => {
    const volume = makeVolume(node, 3)
    const source = node.publish(1, volume)
    node.configure({
      map: [{}, { fsTypes: ['overlay', 'tmpfs'] }, { volumes: ['hostPath'], sources: [`${node.top}/fs/*`] }],
    })
    const end = await node.serve()
    const shown = async (annotations: Record<string, string>, from: string, id: string) => {
      const request = node.request(1, annotations, from, id.repeat(64))
      const [mount] = replaced(await end.call('CreateContainer', 'ContainerRequest', request))
      return gid(mount?.source ?? expect.unreachable())
    }
    expect(await shown(ASKS, node.subPath(1, 'pvc-1', `${source}/0`), 'a')).toBe(2000)
    expect(await shown({ 'modekeep/group': 'scratch=3000' }, node.emptyDir(1, 'scratch'), 'b')).toBe(3000)
    expect(await shown({ 'modekeep/group': '/data=4000' }, volume, 'c')).toBe(4000)
    const elsewhere = await create(end, 1, { 'modekeep/group': '/data=4000' }, '/srv')
    expect(elsewhere.status?.message).toContain('may not have the hostPath volume "/srv" shown to group 4000')
    // A hostPath is never meant by a group alone.
    expect(replaced(await create(end, 1, ASKS, volume))).toEqual([])
  })

  it('the NRI plugin records a container that was created while the plugin was down, and status reports the container as without its group', async () => {
    const source = node.publish(1, makeVolume(node, 1))
    const { pod, container } = node.request(1, ASKS, source)
    await node.serve([pod], [{ ...container, state: 3 }])
    await expect.poll(containers).toMatchObject([
      {
        pod: 'shop/pod-1',
        volume: 'pvc-1',
        group: 2000,
        state: 'without',
        reason: expect.stringContaining('it was created while'),
      },
    ])
  })

  it('the NRI plugin makes a clone for each of a hundred concurrent containers', async () => {
    const source = node.publish(1, makeVolume(node, 1))
    const end = await node.serve()
    // On a busy machine some calls exceed their deadline: kubelet retries them, and so does this test.
    const made = async (at: number): Promise<number> => {
      const request = node.request(1, ASKS, source, String(at).padStart(64, 'd'))
      const answer = await end.call('CreateContainer', 'ContainerRequest', request)
      if (/in time|\[map-late\]|since an earlier attempt|of the same pod/.test(answer.status?.message ?? ''))
        return made(at)
      return replaced(answer).length
    }
    const all = await Promise.all(Array.from({ length: 100 }, (_, at) => made(at)))
    expect(all).toEqual(all.map(() => 1))
    expect(standing()).toHaveLength(100)
  })

  it("the NRI plugin refuses a container whose processes lack the group according to the runtime's CRI socket", async () => {
    const socket = `${node.top}/cri.sock`
    const cri = await criRuntime(socket, /^sandbox-[12]$/, infoWith([3000]))
    try {
      const source = node.publish(1, makeVolume(node, 1))
      const end = await node.serve([], [], ['--cri-socket', socket])
      const refusal = (await create(end, 1, ASKS, source)).status?.message
      expect(refusal).toContain('the processes of container "app" are not in group 2000')
      expect(replaced(await create(end, 1, { 'modekeep/group': '3000' }, source))).toHaveLength(1)
    } finally {
      await cri.close(0)
    }
  })

  it('the NRI plugin has a higher priority than its workers', async () => {
    await node.serve()
    const { pid } = node.plugin
    const niceOf = (process: number | string) =>
      Number(
        fs
          .readFileSync(`/proc/${process}/stat`, 'utf8')
          .replace(/^.*\) /, '')
          .split(' ')[16],
      )
    const WORKER = -7
    expect(niceOf(`${pid}/task/${pid}`)).toBeLessThan(WORKER)
    const children = () => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    await expect.poll(() => children().map(niceOf)).toEqual([WORKER, WORKER])
  })

  it('the NRI plugin reports to its probe whether the runtime calls the plugin', async () => {
    expect(node.probe()).toEqual({ status: 1, stderr: 'no "modekeep nri" runs on this node: start it [nri-plugin]\n' })
    const end = await node.serve()
    await expect.poll(() => node.probe()).toEqual({ status: 0, stderr: '' })
    end.socket.destroy()
    const next = await node.runtime.next()
    expect(node.probe()).toMatchObject({ status: 1, stderr: expect.stringContaining('waits since') })
    await next.start()
    await expect.poll(() => node.probe().status).toBe(0)
  })
})
