import * as fs from 'node:fs'
import * as net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { protobufPackage } from '../../src/grpc/protobuf.ts'
import { InvalidArgument, listen, unary } from '../../src/grpc/server.ts'
import { isDead, lookAt } from '../../src/grpc/socket.ts'

const { method } = protobufPackage('test', { Text: { text: [1, 'string'] } } as const)
const service = { Echo: method('Service/Echo', 'Text', 'Text') }

let top: string
let path: string
const refused: string[][] = []
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-grpc-'))
  path = join(top, 'test.sock')
  refused.length = 0
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

const echo = ({ text }: { text: string }) => {
  if (text === 'wrong') throw new InvalidArgument('there is no such text')
  if (text === 'broken') throw new Error('it broke')
  return { text }
}
const served = () =>
  listen(
    path,
    service,
    unary<typeof service>((...told) => refused.push(told), { Echo: echo }),
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
  it('answers, and says whether the caller or the server is at fault', async () => {
    const server = await served()
    expect(await call('hello')).toMatchObject({ text: 'hello' })
    await expect(call('wrong')).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      details: 'there is no such text',
    })
    await expect(call('broken')).rejects.toMatchObject({ code: grpc.status.INTERNAL, details: 'it broke' })
    expect(refused).toEqual([
      ['Echo', 'there is no such text'],
      ['Echo', 'it broke'],
    ])
    await server.close(1000)
  })

  it('lets nobody else connect, whatever the umask, which stays as it was', async () => {
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

  it('leaves no socket when it is closed, also while somebody is connected who says nothing', async () => {
    const server = await served()
    const silent = net.connect(path)
    await new Promise((resolve) => silent.once('connect', resolve))
    const ended = new Promise((resolve) => silent.once('close', resolve))
    silent.resume()
    await server.close(10)
    await ended
    expect(fs.readdirSync(top)).toEqual([])
  })

  it('refuses a path where something is', async () => {
    fs.writeFileSync(path, '')
    await expect(served()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(fs.readFileSync(path, 'utf8')).toBe('')
  })
})

describe('a socket', () => {
  it('is dead where nobody listens on it any more', async () => {
    const server = await served()
    expect(await isDead(path)).toBe(false)
    fs.renameSync(path, `${path}.old`)
    await server.close(1000)
    expect(await isDead(`${path}.old`)).toBe(true)
  })

  it('is none where nothing is, or a file', async () => {
    expect(lookAt(path)).toBeUndefined()
    fs.writeFileSync(path, '')
    expect(lookAt(path)?.isSocket()).toBe(false)
  })
})
