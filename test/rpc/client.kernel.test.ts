import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { RuntimeVersionMethod } from '../../src/frontends/nri/cri.ts'
import { callGrpcMethodOnce } from '../../src/rpc/client.ts'

it('a gRPC call without an answer from the server leaves no connection open', async () => {
  const top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'grpc-')))
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  const open = new Set<net.Socket>()
  let connections = 0
  const server = net.createServer((socket) => {
    connections++
    open.add(socket.resume().on('error', () => {}))
    socket.once('close', () => open.delete(socket))
  })
  server.listen(`${top}/hung.sock`)
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  for (let call = 0; call < 3; call++) {
    await expect(callGrpcMethodOnce(`${top}/hung.sock`, RuntimeVersionMethod, { version: '' }, 200)).rejects.toThrow(
      'DEADLINE_EXCEEDED',
    )
  }
  await vi.waitFor(() => expect([connections, open.size]).toEqual([3, 0]), 2000)
})
