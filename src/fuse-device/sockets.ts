import * as fs from 'node:fs'
import * as net from 'node:net'
import { join } from 'node:path'
import type { View } from './decide.ts'

export const KUBELET_SOCKET = 'kubelet.sock'

/** sockaddr_un: 108 bytes with the closing zero. */
export const LONGEST_PATH = 107

const OWN = /^modekeep-fuse-\d+-[0-9a-z]+\.sock$/

/** Another plugin's socket is bound for a moment before it listens. */
const YOUNG_MS = 60_000

let serial = 0

/** A new name each time: kubelet may still hold a connection to an older socket of the same name. @param now ms */
export function socketName(pid: number, now: number): string {
  serial += 1
  return `modekeep-fuse-${pid}-${now.toString(36)}${serial.toString(36)}.sock`
}

/** @param own path and inode of the plugin's socket */
export function observe(directory: string, own: { path: string; inode: bigint } | undefined): View {
  const place = look(directory)
  if (place === undefined) return { directory: 'absent', kubelet: undefined, own: false }
  const kubelet = look(join(directory, KUBELET_SOCKET))
  return {
    directory: place.nlink === 0n ? 'detached' : 'present',
    // Inode numbers are used again at once, on some file systems.
    kubelet: kubelet?.isSocket() ? `${kubelet.ino}:${kubelet.ctimeNs}` : undefined,
    own: own !== undefined && look(own.path)?.ino === own.inode,
  }
}

/** @returns undefined where nothing is */
export function look(path: string): fs.BigIntStats | undefined {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

/** Removes sockets that a killed plugin of this kind left. @returns their names */
export async function sweep(directory: string, now: number): Promise<string[]> {
  const names = fs.readdirSync(directory).filter((name) => OWN.test(name))
  const removed: string[] = []
  for (const name of names) {
    const path = join(directory, name)
    const stat = look(path)
    if (!stat?.isSocket() || now - Number(stat.mtimeMs) < YOUNG_MS || !(await isDead(path))) continue
    fs.rmSync(path, { force: true })
    removed.push(name)
  }
  return removed
}

function isDead(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(path)
    connection.once('connect', () => resolve(false))
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
    connection.once('connect', () => connection.destroy())
  })
}
