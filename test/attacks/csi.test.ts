import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { cannotMount } from '../binary/modekeep.ts'
import { call } from '../frontends/csi/kubelet.ts'
import { CsiNode, until } from '../frontends/csi/node.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotServe } from '../helpers/fuse-node.ts'
import { startHangingServer } from '../helpers/hanging.ts'

const cannotHang = cannotServe()

let node: CsiNode

describe.skipIf(cannotMount !== '')(`the CSI server${cannotMount}`, () => {
  beforeEach(() => {
    node = new CsiNode()
    return () => node.end()
  })

  it('refuses another user of the node, also if every user can reach the directories', async () => {
    await node.serve()
    for (const socket of [node.socket, node.registration]) {
      for (let at = socket; at !== node.top; at = at.slice(0, at.lastIndexOf('/')))
        if (at !== socket) fs.chmodSync(at, 0o777)
    }
    fs.chmodSync(node.top, 0o777)
    const connect = `require('node:net').connect(process.argv[1]).on('connect', () => process.exit(7)).on('error', (error) => process.exit(error.code === 'EACCES' ? 8 : 9))`
    const as = (socket: string, ...user: string[]) =>
      spawnSync(user[0] ?? '', [...user.slice(1), process.execPath, '-e', connect, socket], { timeout: 60_000 }).status
    for (const socket of [node.socket, node.registration]) {
      expect(as(socket, 'setpriv', '--reuid', '64322', '--regid', '0', '--clear-groups')).toBe(8)
      expect(as(socket, 'env')).toBe(7)
    }
  })

  it('does not start if other users could replace its socket', async () => {
    fs.mkdirSync(`${node.kubelet}/plugins/modekeep.csi`, { recursive: true })
    fs.chmodSync(`${node.kubelet}/plugins/modekeep.csi`, 0o777)
    const child = await node.serve()
    expect(child.exitCode).toBe(1)
    expect(node.events.at(-1)?.message).toContain('others than root may write to')
    fs.rmdirSync(`${node.kubelet}/plugins/modekeep.csi`)
    fs.symlinkSync(node.top, `${node.kubelet}/plugins/modekeep.csi`)
    expect((await node.serve()).exitCode).toBe(1)
    expect(fs.existsSync(`${node.top}/csi.sock`)).toBe(false)
  })

  it('refuses 16 publications with a subPath of 64 KB before a worker gets a task', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const subPath = 'a/'.repeat(32_768)
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, pod) => node.publish(pod, source, { attributes: { subPath } })),
    )
    for (const { code, message } of answers) {
      expect({ code, message }).toEqual({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('a path has at most 4095 bytes'),
      })
    }
    // A worker logs each publication that it refuses.
    expect(fs.existsSync(node.log)).toBe(false)
    expect(await node.publish(17, source)).toMatchObject({ code: 'OK' })
  })

  it('writes a secret to no argument, environment, log, event or record', async () => {
    await node.serve()
    const source = node.volume('data', 1)
    const secret = 'hunter2-of-the-test'
    // A bind takes no Secret, so only the call without one makes a record.
    await node.publish(1, source, {})
    for (const attributes of [{}, { ownership: 'maybe' }]) {
      await node.publish(2, source, { attributes, secrets: { password: secret, user: secret } })
    }
    const pids = [node.server.pid, ...node.workers()]
    expect(pids).toHaveLength(2)
    const told = pids.flatMap((pid) => ['cmdline', 'environ'].map((file) => fs.readFileSync(`/proc/${pid}/${file}`)))
    const state = fs
      .readdirSync(node.state, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => fs.readFileSync(`${entry.parentPath}/${entry.name}`))
    expect(state.length).toBeGreaterThan(1)
    const all = Buffer.concat([...told, ...state, fs.readFileSync(node.log), Buffer.from(node.stdout)]).toString(
      'latin1',
    )
    expect(all).toContain('csi-worker')
    expect(all).toContain('"verb":"mount"')
    for (const text of [secret, Buffer.from(secret).toString('base64')]) expect(all).not.toContain(text)
  })

  it('ends within a second of SIGTERM despite clients that send nothing or no gRPC', async () => {
    const child = await node.serve()
    for (const words of ['', 'PRI * HTTP/2.0\r\n', 'GET / HTTP/1.1\r\n']) {
      for (const path of [node.socket, node.registration]) {
        const socket = net.connect(path)
        socket.on('error', () => {})
        onTestFinished(() => void socket.destroy())
        await once(socket, 'connect')
        socket.write(words)
      }
    }
    const start = performance.now()
    child.kill('SIGTERM')
    expect((await once(child, 'exit'))[0]).toBe(0)
    expectInTime(performance.now() - start, 1000)
  })

  it('publishes no volume of another namespace with any attributes', async () => {
    node.configure({ allow: [{ sources: [`${node.volumes}/{namespace}/*`] }] })
    await node.serve()
    for (const namespace of ['shop', 'other']) {
      fs.mkdirSync(`${node.volumes}/${namespace}/data`, { recursive: true })
    }
    expect((await node.publish(1, `${node.volumes}/shop/data`)).code).toBe('OK')
    const forged = { 'csi.storage.k8s.io/pod.namespace': 'other', 'kubernetes.io/pod.namespace': 'other' }
    for (const [key, value] of Object.entries(forged)) {
      const { code } = await node.publish(2, `${node.volumes}/other/data`, { attributes: { [key]: value } })
      expect(['FAILED_PRECONDITION', 'INVALID_ARGUMENT']).toContain(code)
    }
    expect(fs.existsSync(node.target(2))).toBe(false)
  })

  it('serves other volumes while the server below one volume hangs, and reports that volume as abnormal', async ({
    skip,
  }) => {
    skip(cannotHang !== '', cannotHang)
    await node.serve()
    const served = `${node.volumes}/served`
    const server = await startHangingServer(served, `${node.top}/hangs`)
    const local = node.volume('data', 1)
    expect((await node.publish(1, served)).code).toBe('OK')
    server.hang()
    const hanging = [node.stats(1), ...[2, 3, 4, 5, 6].map((pod) => node.publish(pod, served))]
    const start = performance.now()
    expect((await node.publish(7, local)).code).toBe('OK')
    expect((await call({ socket: node.socket }, 'Identity/Probe', {})).code).toBe('OK')
    expect((await node.unpublish(7)).code).toBe('OK')
    expectInTime(performance.now() - start, 15_000)
    const [look, ...refused] = await Promise.all(hanging)
    expect(look).toMatchObject({ code: 'OK', reply: { volume_condition: { abnormal: true } } })
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['FAILED_PRECONDITION']))
    expect((await node.unpublish(1)).code).toBe('OK')
    await until(() => !fs.existsSync(node.target(1)))
  })
})
