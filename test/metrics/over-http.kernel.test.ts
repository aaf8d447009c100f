import { once } from 'node:events'
import { get } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { HEALTH_SERVER_LIMITS, serveHealth } from '../../src/metrics/health-server.ts'

// Each test shortens what it waits for.
async function served(metrics: () => Promise<string>, bounds: Partial<typeof HEALTH_SERVER_LIMITS> = {}) {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  free.close()
  await once(free, 'close')
  const where = { address: '127.0.0.1', port }
  const server = await serveHealth(
    where,
    { notReady: () => undefined, metrics },
    { ...HEALTH_SERVER_LIMITS, ...bounds },
  )
  const sockets: Socket[] = []
  onTestFinished(() => {
    server[Symbol.dispose]()
    for (const socket of sockets) socket.destroy()
  })
  const open = async (localAddress = '127.0.0.1') => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => {})
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }
  const ask = (path: string, localAddress = '127.0.0.1') =>
    new Promise<[number | undefined, string]>((resolve, reject) => {
      get({ host: '127.0.0.1', port, path, localAddress, agent: false }, (response) => {
        textOf(response).then((text) => resolve([response.statusCode, text]), reject)
      }).on('error', reject)
    })
  return { open, ask }
}

it("concurrent scrapes, and scrapes shortly after, share one reading of the node's status", async () => {
  let looks = 0
  const text = async () => {
    looks++
    await setTimeout(200)
    return `look ${looks}\n`
  }
  const { ask } = await served(text, { freshMs: 2000 })
  const first = await Promise.all(Array.from({ length: 20 }, () => ask('/metrics')))
  expect(new Set(first.map(String))).toEqual(new Set(['200,look 1\n']))
  expect(await ask('/metrics')).toEqual([200, 'look 1\n'])
  await expect.poll(() => ask('/metrics')).toEqual([200, 'look 2\n'])
})

it('a slow reading of the status fails every waiting scrape and delays no probe, and its result serves the next scrape', async () => {
  const look = Promise.withResolvers<string>()
  let looks = 0
  const text = () => {
    looks++
    return look.promise
  }
  const { ask } = await served(text, { scrapeMs: 500 })
  const scrapes = [ask('/metrics'), ask('/metrics')]
  expect(await ask('/healthz')).toEqual([200, 'ok\n'])
  const late = [503, expect.stringMatching(/^the metrics are not complete after \d+ s: request them again\n$/)]
  expect(await Promise.all(scrapes)).toEqual([late, late])
  const third = ask('/metrics')
  look.resolve('all of it\n')
  expect(await third).toEqual([200, 'all of it\n'])
  expect(looks).toBe(1)
})

it('a failed reading of the status is reported to every waiting scrape, and the next scrape reads the status again', async () => {
  let looks = 0
  const text = async () => {
    if (++looks === 1) throw new Error('the records cannot be read')
    return 'all of it\n'
  }
  const { ask } = await served(text, { freshMs: 200 })
  const failed = [500, 'the records cannot be read\n']
  expect(await Promise.all([ask('/metrics'), ask('/metrics')])).toEqual([failed, failed])
  await expect.poll(() => ask('/metrics')).toEqual([200, 'all of it\n'])
})

it('a client that sends slowly delays no other client', async () => {
  const { open, ask } = await served(async () => 'all of it\n', { requestMs: 1000, connectionMs: 600_000 })
  const slow = await open()
  slow.write('GET /metrics HTTP/1.1\r\nHost: node\r\nX-Slow: ')
  // The server may close with a reset, since this client sends until then. `once` would reject for it.
  const closed = new Promise((resolve) => slow.resume().once('close', resolve))
  const dripping = setInterval(() => slow.write('s'), 100)
  onTestFinished(() => clearInterval(dripping))
  expect(await ask('/metrics')).toEqual([200, 'all of it\n'])
  await closed
})

it.each([
  ['reads nothing', 0],
  ['reads slowly', 1000],
])('a client that %s is disconnected, and delays no other client', async (_, bytes) => {
  const size = 32 * 2 ** 20
  const { open, ask } = await served(async () => 'x'.repeat(size), { connectionMs: 3000 })
  const slow = await open()
  slow.write('GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n')
  let read = 0
  slow.on('readable', () => {})
  for (let turn = 0; turn < 40; turn++) {
    if (turn === 5) expect((await ask('/metrics'))[1].length).toBe(size)
    if (bytes > 0) read += slow.read(bytes)?.length ?? 0
    await setTimeout(100)
  }
  // What the kernel has of it, and then the end.
  slow.removeAllListeners('readable').on('data', (part) => {
    read += part.length
  })
  slow.resume()
  await expect.poll(() => slow.closed).toBe(true)
  expect(read).toBeLessThan(size)
})

it('a client that uses up all connections loses the oldest of them, and no other client does', async () => {
  const look = Promise.withResolvers<string>()
  const { open, ask } = await served(() => look.promise, { connections: 10, requestMs: 60_000 })
  const scrape = ask('/metrics', '127.0.0.3')
  const held: Socket[] = []
  for (let socket = 0; socket < 30; socket++) held.push((await open('127.0.0.2')).resume())
  for (let probe = 0; probe < 5; probe++) expect(await ask('/healthz')).toEqual([200, 'ok\n'])
  await expect.poll(() => held.filter(({ closed }) => !closed).length).toBeLessThan(10)
  expect(held.slice(0, 21).filter(({ closed }) => !closed)).toEqual([])
  look.resolve('all of it\n')
  expect(await scrape).toEqual([200, 'all of it\n'])
})
