import * as fs from 'node:fs'
import * as net from 'node:net'

/** sockaddr_un: 108 bytes with the closing zero. */
export const LONGEST_PATH = 107

/** What a path names now, a link itself. @returns undefined where nothing is */
export function lookAt(path: string): fs.BigIntStats | undefined {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

/** Whether nobody listens on a socket now. Another's is bound a moment before it listens, and looks dead then. */
export function isDead(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(path)
    connection.once('connect', () => {
      connection.destroy()
      resolve(false)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
