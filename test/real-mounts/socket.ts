import { once } from 'node:events'
import { createServer } from 'node:net'
import { onTestFinished } from 'vitest'

/** Makes a socket for as long as the test runs: it goes, as its listener holds the file system, before that is unmounted. */
export async function makeSocket(path: string): Promise<void> {
  const server = createServer().listen(path)
  onTestFinished(async () => {
    server.close()
    await once(server, 'close')
  })
  await once(server, 'listening')
}
