import * as http2 from 'node:http2'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { acceptSocketPathAsAuthority } from '../../src/rpc/authority.ts'

interface Server {
  connect(): net.Socket
  seen: http2.IncomingHttpHeaders[]
  [Symbol.asyncDispose](): Promise<void>
}

let serial = 0

/** @param mend what is done to a connection before the server has it */
async function server(mend: (socket: net.Socket) => Duplex): Promise<Server> {
  const path = join(tmpdir(), `modekeep-authority-${process.pid}-${serial++}.sock`)
  const seen: http2.IncomingHttpHeaders[] = []
  const answering = http2.createServer()
  answering.on('stream', (stream: http2.ServerHttp2Stream, headers) => {
    seen.push(headers)
    // A client that ends with an unread answer resets the connection.
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  })
  const listener = net.createServer((socket) => answering.emit('connection', mend(socket)))
  await new Promise<void>((resolve) => listener.listen(path, () => resolve()))
  return {
    seen,
    connect: () => net.connect(path),
    [Symbol.asyncDispose]: () => new Promise((resolve) => listener.close(() => resolve())),
  }
}

/** @returns the status, or the error's code */
function ask(session: http2.ClientHttp2Session, headers: http2.OutgoingHttpHeaders, body = ''): Promise<unknown> {
  return new Promise((resolve) => {
    const stream = session.request({ ':method': 'POST', ':path': '/v1beta1.DevicePlugin/ListAndWatch', ...headers })
    let text = ''
    stream.setEncoding('utf8')
    stream.on('data', (part: string) => {
      text += part
    })
    stream.on('response', ({ ':status': status }) => stream.on('end', () => resolve(text === body ? status : text)))
    stream.on('error', (error) => resolve((error as NodeJS.ErrnoException).code))
    stream.end(body)
  })
}

/** One byte at a time, as a slow connection may bring them. */
function inPieces(socket: net.Socket): net.Socket {
  const write = socket._write.bind(socket)
  socket._writev = undefined as never
  socket._write = (chunk: Buffer, encoding, done) => {
    const next = (at: number): void =>
      at < chunk.length ? write(chunk.subarray(at, at + 1), encoding, () => next(at + 1)) : done()
    next(0)
  }
  return socket
}

const PATHS = [
  '/var/lib/kubelet/device-plugins/modekeep-fuse-1-abc.sock',
  '//',
  '/a/b/c/d/e/f/g/h',
  '/~!$&()*+,;=:._-%20',
  '/0123456789/ABCDEFGHIJKLMNOPQRSTUVWXYZ/abcdefghijklmnopqrstuvwxyz',
  'localhost',
]

async function statuses(mend: (socket: net.Socket) => Duplex): Promise<[unknown, Server['seen']]> {
  await using http = await server(mend)
  const session = http2.connect('http://localhost', { createConnection: () => http.connect() })
  const answers = new Set<unknown>()
  // Twice: the second time as a reference to the first.
  for (const path of [...PATHS, ...PATHS]) {
    const headers = { ':authority': path, 'x-path': path, 'user-agent': 'grpc-go/1.27.1', te: 'trailers' }
    answers.add(await ask(session, headers, 'body'.repeat(30_000)))
  }
  session.close()
  return [[...answers], http.seen]
}

describe('a path in the header :authority', () => {
  it("is rejected by Node's own server", async () => {
    const [answers] = await statuses((socket) => socket)
    expect(answers).toEqual(['ERR_HTTP2_STREAM_ERROR', 200])
  })

  it('arrives with dashes in place of slashes, and all other headers and the content are unchanged', async () => {
    const [answers, seen] = await statuses(acceptSocketPathAsAuthority)
    expect(answers).toEqual([200])
    const expected = PATHS.map((path) => ({
      ':authority': path.replaceAll('/', '-'),
      ':path': '/v1beta1.DevicePlugin/ListAndWatch',
      'x-path': path,
      'user-agent': 'grpc-go/1.27.1',
    }))
    expect(seen).toMatchObject([...expected, ...expected])
  })

  it('is accepted if its bytes arrive one by one', async () => {
    await using http = await server(acceptSocketPathAsAuthority)
    const session = http2.connect('http://localhost', { createConnection: () => inPieces(http.connect()) })
    expect(await ask(session, { ':authority': '/a/b' }, 'body')).toBe(200)
    session.close()
  })

  it('is accepted without Huffman code, with padding and priority, in every literal form', async () => {
    for (const literal of [0x41, 0x01, 0x11]) {
      const block = Buffer.concat([
        // :method POST, :scheme http, :path /
        Buffer.from([0x83, 0x86, 0x84, literal, 4]),
        Buffer.from('/a/b'),
        // A header with a name of its own, and a change of the table's size before all.
        Buffer.from([0x00, 3]),
        Buffer.from('x-y'),
        Buffer.from([3]),
        Buffer.from('/c/'),
      ])
      const payload = Buffer.concat([
        Buffer.from([2, 0, 0, 0, 0, 15]),
        Buffer.from([0x3f, 0xe1, 0x1f]),
        block,
        Buffer.alloc(2),
      ])
      const head = Buffer.from([0, 0, payload.length, 1, 0x4 | 0x1 | 0x8 | 0x20, 0, 0, 0, 1])
      const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
      await using http = await server(acceptSocketPathAsAuthority)
      const socket = http.connect()
      socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings, head, payload]))
      await expect.poll(() => http.seen).toMatchObject([{ ':authority': '-a-b', 'x-y': '/c/' }])
      socket.destroy()
    }
  })

  it('is not replaced in bytes that are not HTTP/2, and the server closes that connection', async () => {
    await using http = await server(acceptSocketPathAsAuthority)
    for (const junk of ['GET / HTTP/1.1\r\n\r\n'.repeat(3), '\0'.repeat(100)]) {
      const socket = http.connect()
      socket.on('error', () => {})
      socket.write(junk)
      socket.resume()
      await new Promise((resolve) => socket.once('close', resolve))
    }
    expect(http.seen).toEqual([])
  })
})
