import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { ServeHealth } from '../src/operator/actions/health.ts'
import { messageOf, Refusal } from '../src/refusal/refusal.ts'

/** Milliseconds but for `connections` and `headerBytes`. */
export const HEALTH_SERVER_LIMITS = {
  /** A scrape looks at every mount: whoever asks more often gets what the last one got. */
  fresh: 5000,
  /** How long a scrape waits: Prometheus gives up after ten seconds. */
  scrape: 8000,
  /** For the whole request to come. */
  request: 5000,
  /** From accepting a connection to its end, whoever reads slowly or never. */
  connection: 15_000,
  connections: 200,
  headerBytes: 4096,
}

const TEXT = 'text/plain; version=0.0.4; charset=utf-8'

type HealthAnswer = [status: number, text: string]

/**
 * Answers probes, and scrapes where `metrics` is given, over HTTP. Anybody who reaches the port may hold connections, which
 * probes need too: each has one answer and a last moment, and where there are too many the oldest goes of whoever has most.
 * @throws {Refusal} where the address cannot be had
 */
export async function serveHealth(
  { address, port }: Parameters<ServeHealth>[0],
  { notReady, metrics }: Parameters<ServeHealth>[1],
  bounds = HEALTH_SERVER_LIMITS,
): Promise<Disposable> {
  const scraped = metrics && createSharedScrape(metrics, bounds)
  const answer = async (path: string | undefined): Promise<HealthAnswer> => {
    if (path === '/healthz') return [200, 'ok\n']
    if (path === '/readyz') {
      const why = notReady()
      return why === undefined ? [200, 'ok\n'] : [503, `${why}\n`]
    }
    return path === '/metrics' && scraped !== undefined ? scraped() : [404, 'not found\n']
  }
  const limits = {
    headersTimeout: bounds.request,
    requestTimeout: bounds.request,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: bounds.headerBytes,
  }
  const server = createServer(limits, (request, response) => {
    const send = (status: number, text: string) =>
      response.writeHead(status, { 'content-type': TEXT, connection: 'close' }).end(text)
    if (request.method !== 'GET') return send(405, 'only GET\n')
    return answer(request.url?.split('?', 1)[0]).then(
      ([status, text]) => send(status, text),
      (error) => send(500, `${messageOf(error)}\n`),
    )
  })
  server.on('connection', createConnectionLimiter(bounds))
  server.listen(port, address)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new Refusal(`--listen ${address ?? ''}:${port} cannot be had (${messageOf(error)}): name another port`, {
      cause: error,
    })
  }
  // One connection that cannot be accepted is no reason to end.
  server.on('error', () => {})
  return {
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** One look at the node for all who ask meanwhile. Whoever it is too late for is told so: an older text would look like news. */
function createSharedScrape(
  metrics: () => Promise<string>,
  bounds: typeof HEALTH_SERVER_LIMITS,
): () => Promise<HealthAnswer> {
  let current: { text: Promise<string>; since: number } | undefined
  const forget = () => {
    current = undefined
  }
  const begin = () => {
    const text = metrics().finally(() => setTimeout(forget, bounds.fresh).unref())
    return { text, since: performance.now() }
  }
  return async () => {
    current ??= begin()
    const { text, since } = current
    const late = Promise.withResolvers<HealthAnswer>()
    const timer = setTimeout(() => {
      const seconds = Math.round((performance.now() - since) / 1000)
      late.resolve([503, `the node has been looked at for ${seconds} s, and the look goes on: ask again\n`])
    }, bounds.scrape)
    try {
      return await Promise.race([text.then((got): HealthAnswer => [200, got]), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Ends connections that last too long or are too many. */
function createConnectionLimiter(bounds: typeof HEALTH_SERVER_LIMITS): (socket: Socket) => void {
  // In the order in which they came. An address is not to be had any more once its socket is closed.
  const open = new Map<Socket, string | undefined>()
  const endOldest = () => {
    const groups = [...Map.groupBy(open, ([, address]) => address).values()]
    const [oldest] = groups.reduce((one, other) => (other.length > one.length ? other : one))
    if (oldest === undefined) return
    const [socket] = oldest
    // Not only when it has closed: others may come before that.
    open.delete(socket)
    socket.destroy()
  }
  return (socket) => {
    open.set(socket, socket.remoteAddress)
    const last = setTimeout(() => socket.destroy(), bounds.connection).unref()
    socket.once('close', () => {
      clearTimeout(last)
      open.delete(socket)
    })
    if (open.size > bounds.connections) endOldest()
  }
}
