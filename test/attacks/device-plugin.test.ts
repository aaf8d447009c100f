import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as http2 from 'node:http2'
import * as net from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MODEKEEP } from '../binary/modekeep.ts'
import { Stage, until } from '../frontends/device-plugin/stage.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = fs.existsSync(MODEKEEP) ? '' : ' (skipped: run "npm run build")'

async function plugin(stage: Stage) {
  await stage.kubelet.start()
  const child = spawn(MODEKEEP, ['device-plugin', '--kubelet-dir', stage.top], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await until(() => stage.kubelet.lists.length === 1)
  return { child, path: `${stage.directory}/${stage.sockets()[0]}` }
}

async function connected(path: string): Promise<net.Socket> {
  const socket = net.connect(path)
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** What a client may do that never ends. */
const CLIENTS: readonly [what: string, connect: (path: string) => Promise<unknown>][] = [
  ['sends nothing', connected],
  ['sends half a request', async (path) => (await connected(path)).write('PRI * HTTP/2.0\r\n')],
  ['speaks another protocol', async (path) => (await connected(path)).write('GET / HTTP/1.1\r\n')],
  [
    'is idle after its settings',
    async (path) => {
      const socket = await connected(path)
      const session = http2.connect('http://localhost', { createConnection: () => socket })
      session.on('error', () => {})
      await once(session, 'remoteSettings')
    },
  ],
  [
    'keeps a call open and reads nothing',
    async (path) => {
      const socket = await connected(path)
      const session = http2.connect('http://localhost', { createConnection: () => socket })
      session.on('error', () => {})
      const stream = session.request(
        {
          ':method': 'POST',
          ':path': '/v1beta1.DevicePlugin/Allocate',
          'content-type': 'application/grpc',
          te: 'trailers',
        },
        { endStream: false },
      )
      stream.on('error', () => {})
      await once(session, 'remoteSettings')
      socket.pause()
    },
  ],
]

describe.skipIf(skipReason !== '')(`the device plugin${skipReason}`, () => {
  it.each(CLIENTS)('ends within a second of SIGTERM although a client %s', async (_what, connect) => {
    await using stage = new Stage()
    const { child, path } = await plugin(stage)
    for (let times = 0; times < 3; times++) await connect(path)
    const start = performance.now()
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), 5000)
    const [code] = await once(child, 'exit')
    clearTimeout(late)
    expectInTime(performance.now() - start, 1000)
    expect(code).toBe(0)
    expect(stage.sockets()).toEqual([])
  })

  it.runIf(isRoot)('refuses another user of the node, also if every user can reach the directory', async () => {
    await using stage = new Stage()
    const { path } = await plugin(stage)
    for (const directory of [stage.top, stage.directory]) fs.chmodSync(directory, 0o777)
    const connect = `require('node:net').connect(process.argv[1]).on('connect', () => process.exit(7)).on('error', (error) => process.exit(error.code === 'EACCES' ? 8 : 9))`
    const as = (...user: string[]) =>
      spawnSync(user[0] ?? '', [...user.slice(1), process.execPath, '-e', connect, path], { timeout: 60_000 }).status
    expect(as('setpriv', '--reuid', '64322', '--regid', '0', '--clear-groups')).toBe(8)
    expect(as('env')).toBe(7)
  })

  it.runIf(isRoot)(
    "closes another user's connection before reading a request, also if the socket's mode permits all users",
    async () => {
      await using stage = new Stage()
      const { path } = await plugin(stage)
      for (const directory of [stage.top, stage.directory]) fs.chmodSync(directory, 0o777)
      fs.chmodSync(path, 0o666)
      // A server of HTTP/2 speaks first.
      const listen = `
      const socket = require('node:net').connect(process.argv[1]).on('data', () => process.exit(7))
      socket.on('error', () => process.exit(9)).on('end', () => process.exit(8))`
      const as = (...user: string[]) =>
        spawnSync(user[0] ?? '', [...user.slice(1), process.execPath, '-e', listen, path], { timeout: 60_000 }).status
      expect(as('setpriv', '--reuid', '1000', '--regid', '0', '--clear-groups')).toBe(8)
      // With any other ids and capabilities.
      expect(as('setpriv', '--euid', '1000')).toBe(8)
      expect(as('env')).toBe(7)
      expect(stage.kubelet.lists).toHaveLength(1)
    },
  )
})
