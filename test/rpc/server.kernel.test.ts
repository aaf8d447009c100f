import * as fs from 'node:fs'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { GrpcClient } from '../../src/rpc/client.ts'
import { createProtobufPackage } from '../../src/rpc/protobuf.ts'
import { createUnaryCallHandlers, InvalidArgumentError, listenOnGrpcSocket } from '../../src/rpc/server.ts'
import { isStaleSocket, statSocketPath } from '../../src/rpc/socket.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { exchangeAfterCheck, swapDirectories } from '../helpers/sockets.ts'
import { isRoot } from '../helpers/stage.ts'

const { method } = createProtobufPackage('test', { Text: { text: [1, 'string'] } } as const)
const service = { Echo: method('Service/Echo', 'Text', 'Text') }

let top: string
let path: string
const refused: string[][] = []
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-grpc-'))
  path = join(top, 'test.sock')
  refused.length = 0
})
afterEach(() => {
  vi.restoreAllMocks()
  fs.rmSync(top, { recursive: true, force: true })
})

const echo = ({ text }: { text: string }) => {
  if (text === 'wrong') throw new InvalidArgumentError('there is no such text')
  if (text === 'broken') throw new Error('it broke')
  return { text }
}
const served = (at = path) =>
  listenOnGrpcSocket(
    at,
    service,
    createUnaryCallHandlers<typeof service>((...told) => refused.push(told), { Echo: echo }),
  )

async function call(text: string): Promise<unknown> {
  const client = new grpc.Client(`unix:${path}`, grpc.credentials.createInsecure())
  const { Echo } = service
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest(Echo.path, Echo.requestSerialize, Echo.responseDeserialize, { text }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      )
    })
  } finally {
    client.close()
  }
}

describe('a gRPC server on a unix socket', () => {
  it('replies, and distinguishes faults of the caller from faults of the server', async () => {
    const server = await served()
    expect(await call('hello')).toMatchObject({ text: 'hello' })
    await expect(call('wrong')).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      details: 'there is no such text',
    })
    await expect(call('broken')).rejects.toMatchObject({ code: grpc.status.INTERNAL, details: 'it broke' })
    expect(refused).toEqual([
      ['Echo', 'there is no such text', 'INVALID_ARGUMENT'],
      ['Echo', 'it broke', 'INTERNAL'],
    ])
    await server.close(1000)
  })

  it('lets no other user connect under any umask, and restores the umask', async () => {
    const umask = process.umask(0)
    try {
      const server = await served()
      expect(fs.lstatSync(path).mode & 0o777).toBe(0o700)
      expect(process.umask()).toBe(0)
      await server.close(1000)
    } finally {
      process.umask(umask)
    }
  })

  it('leaves no socket when it is closed, also while an idle client is connected', async () => {
    const server = await served()
    const silent = net.connect(path)
    await new Promise((resolve) => silent.once('connect', resolve))
    const ended = new Promise((resolve) => silent.once('close', resolve))
    silent.resume()
    await server.close(10)
    await ended
    expect(fs.readdirSync(top)).toEqual([])
  })

  it('refuses a socket path that already exists', async () => {
    fs.writeFileSync(path, '')
    await expect(served()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(fs.readFileSync(path, 'utf8')).toBe('')
  })

  it('names the path of the socket, not of a descriptor, in an error', async () => {
    fs.writeFileSync(path, '')
    await expect(served()).rejects.toThrow(`EADDRINUSE: address already in use, listen '${path}'`)
  })

  it('is bound and removed in the checked directory, even if its path was replaced', async () => {
    const run = join(top, 'run')
    for (const name of [run, join(top, 'others')]) fs.mkdirSync(name)
    const umask = process.umask
    vi.spyOn(process, 'umask').mockImplementationOnce((mask) => {
      swapDirectories(run, join(top, 'others'))
      return umask(mask as number)
    })
    const server = await served(join(run, 'test.sock'))
    expect(fs.readdirSync(join(top, 'others'))).toEqual([])
    expect(fs.readdirSync(`${run}-moved`)).toEqual(['test.sock'])
    fs.writeFileSync(join(top, 'others', 'test.sock'), 'of another program')
    await server.close(1000)
    expect(fs.readdirSync(`${run}-moved`)).toEqual([])
    expect(fs.readdirSync(join(top, 'others'))).toEqual(['test.sock'])
  })

  it.each([
    ['all users can write to its directory', 'shared/run', 0o777],
    ["its directory's group can write to it", 'shared/run', 0o770],
    ['all users can write to a directory above it', 'shared', 0o777],
  ])('is not bound if %s', async (_what, name, mode) => {
    const run = join(top, 'shared/run')
    fs.mkdirSync(run, { recursive: true })
    if (isRoot) fs.chownSync(join(top, name), 0, 1000)
    fs.chmodSync(join(top, name), mode)
    const reason = `EPERM (users other than root can write to ${join(top, name)})`
    await expect(served(join(run, 'test.sock'))).rejects.toThrow(reason)
    expect(fs.readdirSync(run)).toEqual([])
  })

  it('is bound at a path that is longer than a socket address', async () => {
    const run = join(top, 'x'.repeat(120))
    fs.mkdirSync(run)
    const server = await served(join(run, 'test.sock'))
    expect(fs.readdirSync(run)).toEqual(['test.sock'])
    await server.close(1000)
    expect(fs.readdirSync(run)).toEqual([])
  })
})

describe('a gRPC client on a unix socket', () => {
  it('connects to the checked socket, even if its path was replaced', async () => {
    const run = join(top, 'run')
    for (const name of [run, join(top, 'others')]) fs.mkdirSync(name)
    const ours = await served(join(run, 'test.sock'))
    const theirs = await listenOnGrpcSocket(join(top, 'others/test.sock'), service, {
      Echo: (_call: unknown, answer: grpc.sendUnaryData<{ text: string }>) => answer(null, { text: 'of another' }),
    })
    exchangeAfterCheck(() => swapDirectories(run, join(top, 'others')))
    using client = new GrpcClient(join(run, 'test.sock'))
    expect(fs.lstatSync(run).isSymbolicLink()).toBe(true)
    expect(await client.call(service.Echo, { text: 'hello' }, 60_000)).toMatchObject({ text: 'hello' })
    for (const server of [ours, theirs]) await server.close(1000)
  })

  it('names the path of a socket on which no process listens', async () => {
    const server = await served()
    fs.renameSync(path, `${path}.old`)
    await server.close(1000)
    using client = new GrpcClient(`${path}.old`)
    await expect(client.call(service.Echo, { text: '' }, 60_000)).rejects.toThrow(`ECONNREFUSED ${path}.old`)
  })

  it.skipIf(!isRoot)(addSkipReason("refuses another user's socket", isRoot ? '' : 'needs root'), async () => {
    const server = await served()
    fs.chownSync(path, 1000, 1000)
    expect(() => new GrpcClient(path)).toThrow(/EPERM \(it belongs to another user than root\)/)
    await server.close(1000)
  })
})

describe('a socket', () => {
  it('is stale if no process listens on it any more', async () => {
    const server = await served()
    expect(await isStaleSocket(path)).toBe(false)
    fs.renameSync(path, `${path}.old`)
    await server.close(1000)
    expect(await isStaleSocket(`${path}.old`)).toBe(true)
  })

  it('is not stale if it is missing or a file', async () => {
    expect(statSocketPath(path)).toBeUndefined()
    fs.writeFileSync(path, '')
    expect(statSocketPath(path)?.isSocket()).toBe(false)
  })
})
