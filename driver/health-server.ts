import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServeHealth } from '../src/operator/actions/health.ts'
import { messageOf, Refusal } from '../src/refusal/refusal.ts'

/** A scrape looks at every mount: whoever asks more often gets what the last one got. */
const FRESH_MS = 5000
const TEXT = 'text/plain; version=0.0.4; charset=utf-8'
// Anybody who reaches the port may hold connections, which probes need too.
const LIMITS = { headersTimeout: 5000, requestTimeout: 5000, connectionsCheckingInterval: 1000, maxHeaderSize: 4096 }
const MOST_CONNECTIONS = 200

/** Answers probes, and scrapes where `metrics` is given, over HTTP. @throws {Refusal} where the address cannot be had */
export const serveHealth: ServeHealth = async ({ address, port }, { notReady, metrics }) => {
  let scrape: Promise<string> | undefined
  const forget = () => {
    scrape = undefined
  }
  const scraped = (make: () => Promise<string>) => {
    scrape ??= make().finally(() => setTimeout(forget, FRESH_MS).unref())
    return scrape
  }
  const answer = async (path: string | undefined): Promise<[status: number, text: string]> => {
    if (path === '/healthz') return [200, 'ok\n']
    if (path === '/readyz') {
      const why = notReady()
      return why === undefined ? [200, 'ok\n'] : [503, `${why}\n`]
    }
    return path === '/metrics' && metrics !== undefined ? [200, await scraped(metrics)] : [404, 'not found\n']
  }
  const server = createServer(LIMITS, (request, response) => {
    const send = (status: number, text: string) =>
      response.writeHead(status, { 'content-type': TEXT, connection: 'close' }).end(text)
    if (request.method !== 'GET') return send(405, 'only GET\n')
    return answer(request.url?.split('?', 1)[0]).then(
      ([status, text]) => send(status, text),
      (error) => send(500, `${messageOf(error)}\n`),
    )
  })
  server.maxConnections = MOST_CONNECTIONS
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
