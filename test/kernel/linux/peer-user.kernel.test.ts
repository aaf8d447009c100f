import * as fs from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { expect, it, onTestFinished } from 'vitest'
import { readPeer } from '../../../src/kernel/linux/socket-peer.ts'

const descriptorOf = (socket: Socket) => (socket as { _handle?: { fd?: number } })._handle?.fd ?? -1

/** Returns the server's end of a connection. */
async function accepted(listen: { path: string } | { port: number; host: string }): Promise<Socket> {
  const { promise, resolve } = Promise.withResolvers<Socket>()
  const server = createServer(resolve)
  await new Promise<void>((listening) => void server.listen(listen, listening))
  const address = server.address()
  const client = typeof address === 'string' ? connect(address) : connect((address as AddressInfo).port, '127.0.0.1')
  const socket = await promise
  onTestFinished(() => {
    for (const end of [client, socket]) end.destroy()
    server.close()
  })
  return socket
}

it("the user id of a Unix socket's peer is returned, and is undefined after the connection has ended", async () => {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-peer-`)
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  const socket = await accepted({ path: `${top}/socket` })
  expect(descriptorOf(socket)).toBeGreaterThan(2)
  expect(readPeer(descriptorOf(socket))).toEqual({ pid: process.pid, user: process.geteuid?.() })
  socket.destroy()
  expect(readPeer(descriptorOf(socket))).toBeUndefined()
})

it("a descriptor without peer credentials never counts as root's: a file, or a connection by TCP", async () => {
  const file = fs.openSync('/dev/null', 'r')
  onTestFinished(() => fs.closeSync(file))
  expect(readPeer(file)).toBeUndefined()
  expect(readPeer(descriptorOf(await accepted({ port: 0, host: '127.0.0.1' })))).toEqual({ pid: 0, user: 0xffffffff })
})
