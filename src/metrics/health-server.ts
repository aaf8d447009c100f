import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import type { HealthServerStarter } from '../cli/commands/options.ts'
import { createFault } from '../errors/fault.ts'
import { formatError, Refusal } from '../errors/refusal.ts'

export const HEALTH_SERVER_LIMITS = {
  /** A scrape inspects every mount, so requests within this time share one result. */
  freshMs: 5000,
  /** Longest time that a scrape waits. Prometheus gives up after ten seconds. */
  scrapeMs: 8000,
  /** Time in which the whole request must arrive. */
  requestMs: 5000,
  /** Longest life of a connection, even if its client reads slowly or not at all. */
  connectionMs: 15_000,
  connections: 200,
  headerBytes: 4096,
}

const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

type HealthResponse = [status: number, text: string]

/**
 * Answers probes over HTTP, and scrapes if `metrics` is given. Any client that reaches the port may hold connections, and
 * probes need connections too. So each connection gets one answer and a deadline, and if there are too many, the oldest
 * connection of the address with the most is closed.
 * @throws {Refusal} if the server cannot listen at the address
 */
export async function serveHealth(
  { address, port }: Parameters<HealthServerStarter>[0],
  { notReady, metrics }: Parameters<HealthServerStarter>[1],
  bounds = HEALTH_SERVER_LIMITS,
): Promise<Disposable> {
  const scraped = metrics && createSharedScrape(metrics, bounds)
  const answer = async (path: string | undefined): Promise<HealthResponse> => {
    if (path === '/healthz') return [200, 'ok\n']
    if (path === '/readyz') {
      const reason = notReady()
      return reason === undefined ? [200, 'ok\n'] : [503, `${reason}\n`]
    }
    return path === '/metrics' && scraped !== undefined ? scraped() : [404, 'not found\n']
  }
  const limits = {
    headersTimeout: bounds.requestMs,
    requestTimeout: bounds.requestMs,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: bounds.headerBytes,
  }
  const server = createServer(limits, (request, response) => {
    const send = (status: number, text: string) =>
      response.writeHead(status, { 'content-type': METRICS_CONTENT_TYPE, connection: 'close' }).end(text)
    if (request.method !== 'GET') return send(405, 'only GET\n')
    return answer(request.url?.split('?', 1)[0]).then(
      ([status, text]) => send(status, text),
      (error) => send(500, `${formatError(error)}\n`),
    )
  })
  server.on('connection', createConnectionLimiter(bounds))
  server.listen(port, address)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new Refusal(
      createFault(
        'file-access',
        `--listen ${address ?? ''}:${port} cannot be used (${formatError(error)})`,
        'name another port',
      ),
      {
        cause: error,
      },
    )
  }
  // A connection that cannot be accepted must not end the process.
  server.on('error', () => {})
  return {
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Shares one scrape among concurrent clients. A late client gets 503, because an older result would look current. */
function createSharedScrape(
  metrics: () => Promise<string>,
  bounds: typeof HEALTH_SERVER_LIMITS,
): () => Promise<HealthResponse> {
  let current: { text: Promise<string>; since: number } | undefined
  const forget = () => {
    current = undefined
  }
  const begin = () => {
    const text = metrics().finally(() => setTimeout(forget, bounds.freshMs).unref())
    return { text, since: performance.now() }
  }
  return async () => {
    current ??= begin()
    const { text, since } = current
    const timeout = Promise.withResolvers<HealthResponse>()
    const timer = setTimeout(() => {
      const seconds = Math.round((performance.now() - since) / 1000)
      timeout.resolve([503, `the metrics are not complete after ${seconds} s: request them again\n`])
    }, bounds.scrapeMs)
    try {
      return await Promise.race([text.then((page): HealthResponse => [200, page]), timeout.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Closes connections that last too long or exceed the limit. */
function createConnectionLimiter(bounds: typeof HEALTH_SERVER_LIMITS): (socket: Socket) => void {
  // Oldest connection first. The address is kept, because a closed socket no longer has one.
  const open = new Map<Socket, string | undefined>()
  const endOldest = () => {
    const groups = [...Map.groupBy(open, ([, address]) => address).values()]
    const [oldest] = groups.reduce((one, other) => (other.length > one.length ? other : one))
    if (oldest === undefined) return
    const [socket] = oldest
    // Deleted here, as further connections may be accepted before the close event.
    open.delete(socket)
    socket.destroy()
  }
  return (socket) => {
    open.set(socket, socket.remoteAddress)
    const deadline = setTimeout(() => socket.destroy(), bounds.connectionMs).unref()
    socket.once('close', () => {
      clearTimeout(deadline)
      open.delete(socket)
    })
    if (open.size > bounds.connections) endOldest()
  }
}
