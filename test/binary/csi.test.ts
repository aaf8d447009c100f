import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { isRecordDirectoryBusy } from '../../src/state/lock-holders.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { walkProgressRecords } from '../../src/state/process-records.ts'
import { listVolumesWithRecords, locateMountRecords, locateVolumeRecords } from '../../src/state/record-directories.ts'
import { call } from '../frontends/csi/kubelet.ts'
import { CsiNode, mounted, until } from '../frontends/csi/node.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotMount, MODEKEEP } from './modekeep.ts'

/** Older kubelets discard an answer without a usage. */
const NO_USAGE = [{ available: '0', total: '0', used: '0' }]

let node: CsiNode
const group = (path: string) => fs.statSync(path).gid

/** A job at this target waits until it is released, as it would behind another call. */
function held(pod: number): Disposable {
  const store = { host: linuxHost, config: { stateDir: node.state } }
  const lock = tryLockRecordDirectory(store, locateMountRecords(store, node.target(pod)))
  if (lock === undefined) throw new Error('another process has the lock')
  return lock
}

describe.skipIf(cannotMount !== '')(`the executable as a CSI driver${cannotMount}`, () => {
  beforeEach(() => {
    node = new CsiNode()
    return () => node.end()
  })

  it("answers kubelet's calls: registration, an inline volume with a group, repeats, unpublication", async () => {
    await node.serve()
    const registration = {
      socket: node.registration,
      authority: encodeURIComponent(node.registration),
      deadlineMs: 20_000,
    }
    expect(await call(registration, 'Registration/GetInfo', {})).toMatchObject({
      code: 'OK',
      reply: { type: 'CSIPlugin', name: 'modekeep.csi', endpoint: node.socket, supported_versions: ['1.0.0'] },
    })
    expect(await call({ socket: node.socket }, 'Node/NodeGetInfo', {})).toMatchObject({
      reply: { node_id: expect.stringMatching(/./), max_volumes_per_node: '0' },
    })
    const status = { plugin_registered: true, error: '' }
    expect((await call(registration, 'Registration/NotifyRegistrationStatus', status)).code).toBe('OK')
    // The event is read from the server's output, which may come after its answer.
    await until(() => node.events.length === 3)
    expect(node.events.map(({ event }) => event)).toEqual(['start', 'listening', 'registered'])
    expect(await call({ socket: node.socket }, 'Identity/GetPluginInfo', {})).toMatchObject({
      reply: { name: 'modekeep.csi' },
    })
    expect((await call({ socket: node.socket }, 'Identity/Probe', {})).reply).toEqual({ ready: { value: true } })
    expect((await call({ socket: node.socket }, 'Node/NodeStageVolume', {})).code).toBe('UNIMPLEMENTED')
    const source = node.volume('data', 3)
    for (let times = 0; times < 2; times++) {
      const { reply } = await call({ socket: node.socket }, 'Node/NodeGetCapabilities', {})
      expect(reply.capabilities).toEqual([2, 4, 5, 6].map((type) => ({ rpc: { type } })))
    }
    for (let times = 0; times < 3; times++) {
      const walk = { group: '2000', attributes: { ownership: 'walk', restoreOnUnmount: 'true' } }
      expect(await node.publish(1, source, walk)).toMatchObject({ code: 'OK', message: '' })
    }
    expect(fs.readdirSync(node.target(1))).toHaveLength(3)
    expect(group(`${node.target(1)}/0`)).toBe(2000)
    const stats = await node.stats(1)
    expect(stats).toMatchObject({ code: 'OK', reply: { volume_condition: { abnormal: false, message: '' } } })
    expect(stats.reply.usage).toMatchObject([{ unit: 1 }, { unit: 2 }])
    for (let times = 0; times < 2; times++) expect((await node.unpublish(1)).code).toBe('OK')
    expect(fs.existsSync(node.target(1))).toBe(false)
    expect(group(`${source}/0`)).toBe(0)
    expect((await node.stats(1)).code).toBe('NOT_FOUND')
    expect(node.workers()).toHaveLength(1)
  })

  it('leaves a published volume unchanged if the options differ, and reports invalid calls', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    await node.publish(1, source)
    expect(await node.publish(1, source, { attributes: { mountOptions: 'noatime' } })).toMatchObject({
      code: 'ALREADY_EXISTS',
    })
    expect(fs.readdirSync(node.target(1))).toEqual(['0'])
    expect(await node.publish(2, '/etc')).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('namespace "shop" may not have bind "/etc"'),
    })
    expect(await node.publish(2, source, { attributes: { 'kubernetes.io/pod.namespace': 'other' } })).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('volumeAttributes have unknown ["kubernetes.io/pod.namespace"]'),
    })
    const empty = await call({ socket: node.socket }, 'Node/NodePublishVolume', {})
    expect(empty.code).toBe('INVALID_ARGUMENT')
    for (const field of ['volume_id', 'target_path', 'volume_capability']) expect(empty.message).toContain(field)
    for (const [method, path] of [
      ['NodeUnpublishVolume', 'target_path'],
      ['NodeGetVolumeStats', 'volume_path'],
    ]) {
      expect(await call({ socket: node.socket }, `Node/${method}`, {})).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: `volume_id is missing: name it; ${path} is missing: name it [csi-request]`,
      })
    }
  })

  it('answers ABORTED in time while a mount is running, and the next call gets its result', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    {
      using _ = held(1)
      const start = performance.now()
      expect(await node.publish(1, source, { deadlineMs: 6000 })).toMatchObject({
        code: 'ABORTED',
        message: expect.stringMatching(/^mounting takes \d s so far and goes on: kubelet asks again \[in-progress\]$/),
      })
      expectInTime(performance.now() - start, 6000)
      expect(await node.publish(1, source, { attributes: { mountOptions: 'noatime' } })).toMatchObject({
        code: 'ABORTED',
        message: expect.stringContaining('another request came first: mounting takes'),
      })
    }
    expect((await node.publish(1, source)).code).toBe('OK')
    expect(fs.readdirSync(node.target(1))).toEqual(['0'])
    expect(node.workers()).toHaveLength(1)
  })

  it("reports the progress of another call's walk that the publication waits for", async () => {
    await node.serve()
    const source = node.volume('data', 3)
    const walk = { group: '2000', attributes: { ownership: 'walk' } }
    expect((await node.publish(2, source, walk)).code).toBe('OK')
    const store = { host: linuxHost, config: { stateDir: node.state } }
    const [volume = ''] = listVolumesWithRecords(store)
    {
      using _ = tryLockRecordDirectory(store, locateVolumeRecords(store, volume))
      walkProgressRecords.write(store, { volume, pid: process.pid, at: Date.now(), visited: 70, changed: 50 })
      expect(await node.publish(1, source, { ...walk, deadlineMs: 8000 })).toMatchObject({
        code: 'ABORTED',
        message: expect.stringContaining('(waiting for the walk of another call, inodes visited: 70, changed: 50)'),
      })
    }
    expect((await node.publish(1, source, walk)).code).toBe('OK')
  })

  it('publishes a SINGLE_NODE_SINGLE_WRITER volume at one of several concurrent targets', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const wish = { mode: 6, volumeId: 'v', ephemeral: false }
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map((pod) => node.publish(pod, source, wish)))
    expect(answers.map(({ code }) => code).sort()).toEqual([...Array(5).fill('FAILED_PRECONDITION'), 'OK'])
    expect([1, 2, 3, 4, 5, 6].filter((pod) => fs.existsSync(node.target(pod)))).toHaveLength(1)
    expect(fs.existsSync(`${node.state}/publications`)).toBe(false)
  })

  it.each(['idmap', 'walk'])(
    'publishes one source with %s at fifty targets concurrently, and unpublishes them',
    async (ownership) => {
      await node.serve()
      const source = node.volume('data', 2)
      fs.chownSync(source, 0, 5000)
      fs.chmodSync(source, 0o2775)
      const more: Record<string, string> = ownership === 'walk' ? { restoreOnUnmount: 'true' } : {}
      const wish = { group: '2000', attributes: { ownership, ...more } }
      const pods = Array.from({ length: 50 }, (_, at) => at)
      const failures = (answers: { code: string; message: string }[]) =>
        // A call that waits for its turn for too long is repeated by kubelet.
        answers.filter(({ code }) => code !== 'OK' && code !== 'ABORTED')
      for (let round = 0; round < 2; round++) {
        expect(failures(await Promise.all(pods.map((pod) => node.publish(pod, source, wish))))).toEqual([])
        expect(failures(await Promise.all(pods.map((pod) => node.unpublish(pod))))).toEqual([])
      }
    },
  )

  it('completes a publication whose caller has cancelled', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const cancelling = new AbortController()
    const lock = held(1)
    const first = node.publish(1, source, { signal: cancelling.signal })
    await until(() => node.isAtWork(1))
    cancelling.abort()
    expect((await first).code).toBe('CANCELLED')
    lock[Symbol.dispose]()
    await until(() => mounted(node.target(1)))
  })

  it('ends a running publication before it unpublishes the volume', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const lock = held(1)
    const publishing = node.publish(1, source)
    await until(() => node.isAtWork(1))
    const [worker] = node.workers()
    const unpublishing = node.unpublish(1)
    expect(await publishing).toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining('was ended by SIGKILL'),
    })
    lock[Symbol.dispose]()
    expect((await unpublishing).code).toBe('OK')
    expect(node.workers()).not.toContain(worker)
    expect(fs.existsSync(node.target(1))).toBe(false)
  })

  it('reports a killed worker, and mounts the volume at the next call', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const lock = held(1)
    const publishing = node.publish(1, source)
    await until(() => node.isAtWork(1))
    for (const pid of node.workers()) process.kill(pid, 'SIGKILL')
    expect(await publishing).toMatchObject({ code: 'ABORTED' })
    lock[Symbol.dispose]()
    expect((await node.publish(1, source)).code).toBe('OK')
  })

  it('continues after SIGKILL: old sockets are replaced, a worker finishes, and the next server finds the mount', async () => {
    const killed = await node.serve()
    const source = node.volume('data', 1)
    const lock = held(1)
    const publishing = node.publish(1, source)
    await until(() => node.isAtWork(1))
    const left = node.workers()
    killed.kill('SIGKILL')
    expect((await publishing).code).toBe('UNAVAILABLE')
    for (const path of [node.socket, node.registration]) expect(fs.existsSync(path)).toBe(true)
    await node.serve()
    lock[Symbol.dispose]()
    await until(() => mounted(node.target(1)) && !node.workers().some((pid) => left.includes(pid)))
    expect((await node.publish(1, source)).code).toBe('OK')
    expect((await node.unpublish(1)).code).toBe('OK')
  })

  it("ends the publication of a killed server's worker when the pod is deleted, without waiting for its walk", async () => {
    const killed = await node.serve()
    const source = node.volume('data', 3)
    const walk = { group: '2000', attributes: { ownership: 'walk', restoreOnUnmount: 'true' } }
    expect((await node.publish(2, source, walk)).code).toBe('OK')
    const store = { host: linuxHost, config: { stateDir: node.state } }
    const [volume = ''] = listVolumesWithRecords(store)
    // As long as the test has the volume, a worker that mounts it waits, and has its target.
    const lock = tryLockRecordDirectory(store, locateVolumeRecords(store, volume))
    const publishing = node.publish(1, source, walk)
    await until(() => isRecordDirectoryBusy(store, locateMountRecords(store, node.target(1))))
    const [left = 0] = node.workers()
    killed.kill('SIGKILL')
    expect((await publishing).code).toBe('UNAVAILABLE')
    await node.serve()
    expect(node.workers()).toContain(left)
    // And the one that the new server has started.
    expect(node.workers()).toHaveLength(2)
    const unpublishing = node.unpublish(1)
    await until(() => !node.workers().includes(left), 5000)
    lock?.release()
    expect((await unpublishing).code).toBe('OK')
    expect(fs.existsSync(node.target(1))).toBe(false)
    expect((await node.unpublish(2)).code).toBe('OK')
    expect(group(`${source}/0`)).toBe(0)
  })

  it('serves once on a node: a second server waits until the first one has ended', async () => {
    const first = await node.serve()
    const second = await node.serve({ isWaiting: true })
    await until(() => node.events.some(({ event }) => event === 'waiting'))
    expect((await call({ socket: node.socket }, 'Identity/Probe', {})).code).toBe('OK')
    first.kill('SIGTERM')
    expect((await once(first, 'exit'))[0]).toBe(0)
    await until(() => node.events.filter(({ event }) => event === 'listening').length === 2)
    expect((await call({ socket: node.socket }, 'Identity/Probe', {})).code).toBe('OK')
    second.kill('SIGTERM')
    expect((await once(second, 'exit'))[0]).toBe(0)
  })

  it('ends within a second of SIGTERM and removes its sockets while a mount continues', async () => {
    const child = await node.serve()
    const source = node.volume('data', 1)
    const lock = held(1)
    const publishing = node.publish(1, source)
    await until(() => node.isAtWork(1))
    const start = performance.now()
    child.kill('SIGTERM')
    expect((await once(child, 'exit'))[0]).toBe(0)
    expectInTime(performance.now() - start, 1000)
    expect((await publishing).code).not.toBe('OK')
    for (const path of [node.socket, node.registration]) expect(fs.existsSync(path)).toBe(false)
    lock[Symbol.dispose]()
    await until(() => mounted(node.target(1)) && node.workers().length === 0)
  })

  it('publishes and unpublishes a hundred concurrent volumes with few workers', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const pods = Array.from({ length: 100 }, (_, pod) => pod)
    const published = await Promise.all(pods.map((pod) => node.publish(pod, source, { group: '2000' })))
    expect(new Set(published.map(({ code }) => code))).toEqual(new Set(['OK']))
    expect(node.workers().length).toBeLessThanOrEqual(16)
    expect(pods.every((pod) => fs.readdirSync(node.target(pod)).length === 1)).toBe(true)
    const gone = await Promise.all(pods.map((pod) => node.unpublish(pod)))
    expect(new Set(gone.map(({ code }) => code))).toEqual(new Set(['OK']))
    expect(pods.some((pod) => fs.existsSync(node.target(pod)))).toBe(false)
  })

  it('reports the driver name and node name from its options', async () => {
    await node.serve({ options: ['--driver-name', 'volumes.example.com', '--node-id', 'node-7'] })
    const socket = `${node.kubelet}/plugins/volumes.example.com/csi.sock`
    const registration = { socket: `${node.kubelet}/plugins_registry/volumes.example.com-reg.sock` }
    expect((await call(registration, 'Registration/GetInfo', {})).reply).toMatchObject({
      name: 'volumes.example.com',
      endpoint: socket,
    })
    expect((await call({ socket }, 'Identity/GetPluginInfo', {})).reply).toMatchObject({ name: 'volumes.example.com' })
    expect((await call({ socket }, 'Node/NodeGetInfo', {})).reply).toMatchObject({ node_id: 'node-7' })
  })

  it.each([
    ['--driver-name', 'Volumes', 'write up to 63 of a-z, 0-9, - and .'],
    ['--driver-name', '../etc', 'write up to 63 of a-z, 0-9, - and .'],
    ['--driver-name', 'a'.repeat(64), 'write up to 63 of a-z, 0-9, - and .'],
    ['--node-id', 'a node', 'without a space'],
  ])('does not start with %s %j', (option, value, remedy) => {
    const { status, stderr } = spawnSync(MODEKEEP, ['csi', '--kubelet-dir', node.kubelet, option, value], {
      env: { MODEKEEP_CONFIG: `${node.top}/config.json` },
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([2, expect.stringContaining(remedy)])
  })

  it('exits with status 1 if its socket is removed, as kubelet would never call again', async () => {
    const child = await node.serve()
    fs.rmSync(node.registration)
    expect((await once(child, 'exit'))[0]).toBe(1)
    expect(node.events.at(-1)).toMatchObject({
      event: 'failed',
      message: expect.stringContaining('modekeep.csi-reg.sock'),
    })
    expect(fs.existsSync(node.socket)).toBe(false)
  })

  it("repairs a volume that was unmounted or has a new source at kubelet's next call, and commands report it", async () => {
    await node.serve()
    const source = node.volume('data', 1)
    expect((await node.publish(1, source)).code).toBe('OK')
    execFileSync('umount', ['--lazy', node.target(1)])
    expect(await node.stats(1)).toMatchObject({
      code: 'OK',
      reply: { usage: NO_USAGE, volume_condition: { abnormal: true, message: 'missing: it is not mounted' } },
    })
    expect((await node.publish(1, source)).code).toBe('OK')
    expect(fs.readdirSync(node.target(1))).toEqual(['0'])
    fs.renameSync(source, `${source}-before`)
    fs.mkdirSync(source)
    expect((await node.publish(1, source)).code).toBe('OK')
    expect(fs.readdirSync(node.target(1))).toEqual([])
    const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
    const status = JSON.parse(execFileSync(MODEKEEP, ['status', '--json'], { env, encoding: 'utf8' }))
    expect(status.mounts).toMatchObject([{ directory: node.target(1), pod: 'shop/pod-1', state: 'healthy' }])
  })

  it("does not replace another server's socket or another file at its socket path", async () => {
    const place = node.socket.slice(0, node.socket.lastIndexOf('/'))
    fs.mkdirSync(place, { recursive: true, mode: 0o700 })
    const other = net.createServer()
    other.listen(node.socket)
    await once(other, 'listening')
    expect((await node.serve()).exitCode).toBe(1)
    expect(node.events.at(-1)?.message).toContain('something else is at')
    expect(fs.existsSync(node.socket)).toBe(true)
    other.close()
    await once(other, 'close')
    fs.writeFileSync(node.socket, 'a file')
    expect((await node.serve()).exitCode).toBe(1)
    expect(fs.readFileSync(node.socket, 'utf8')).toBe('a file')
  })

  it('keeps its own version after its executable was replaced', async () => {
    const copy = `${node.top}/modekeep`
    fs.copyFileSync(MODEKEEP, copy)
    fs.chmodSync(copy, 0o755)
    await node.serve({ executable: copy })
    fs.rmSync(copy)
    fs.writeFileSync(copy, 'another')
    expect(await node.publish(1, node.volume('data', 1))).toMatchObject({ code: 'OK', message: '' })
    expect(node.workers().map((pid) => fs.readlinkSync(`/proc/${pid}/exe`))).toEqual([`${copy} (deleted)`])
  })

  it("starts no worker for a user who types the worker's verb, or for kubelet", () => {
    const typed = spawnSync('script', ['-qec', `${MODEKEEP} csi-worker`, '/dev/null'], { encoding: 'utf8' })
    expect(typed.stdout).toContain('there is no verb "csi-worker"')
    const named = spawnSync(MODEKEEP, ['csi', '--kubelet-dir', `${node.top}/none`], {
      encoding: 'utf8',
      env: { MODEKEEP_CONFIG: `${node.top}/config.json` },
    })
    expect(named.status).toBe(1)
    expect(named.stdout).toContain('kubelet has no directory')
  })
})
