import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { vi } from 'vitest'
import { nodeFs } from '../../src/kernel/path-handle.ts'

/** Puts a link to another directory in the place of one. */
export function swapDirectories(directory: string, other: string): void {
  fs.renameSync(directory, `${directory}-moved`)
  fs.symlinkSync(other, directory)
}

/** Calls `change` once, after a socket's owner was checked: that is the second fstat(2) of its handle. */
export function exchangeAfterCheck(change: () => void): void {
  const { fstatSync } = nodeFs
  let checks = 0
  vi.spyOn(nodeFs, 'fstatSync').mockImplementation(((fd: number, options?: fs.StatSyncOptions) => {
    const stat = fstatSync(fd, options as undefined)
    if (stat.isSocket() && ++checks === 2) change()
    return stat
  }) as typeof fstatSync)
}

/** Makes a socket without a listener, as a killed server leaves it. */
export async function makeDeadSocket(path: string): Promise<void> {
  const server = net.createServer().listen(`${path}.live`)
  await once(server, 'listening')
  fs.renameSync(`${path}.live`, path)
  server.close()
  await once(server, 'close')
}
