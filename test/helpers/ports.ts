import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** Returns a free port of 127.0.0.1. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Returns whether a process listens at the port. */
export function isListening(port: number, address = '127.0.0.1'): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, address)
    socket.once('connect', () => done(true)).once('error', () => done(false))
    socket.once('connect', () => socket.destroy())
  })
}
