import * as fs from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'

/** __SO_ACCEPTCON (include/uapi/linux/net.h) in /proc/net/unix: a process listens at the socket. */
const LISTENING_FLAG = 0x10000

// Num, RefCount, Protocol, Flags, Type, St, Inode, Path. A socket without a name has no path.
const ROW = /^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) [0-9A-F]+ [0-9A-F]+ +\d+ (\/.*)$/gm

/**
 * Checks for a listener at a Unix socket in the kernel's tables, without connecting. Reads the tables of this process's
 * network namespace and of the one of pid 1.
 * @param path may contain links, such as `/var/run`
 */
export function isListening(path: string): boolean {
  const target = tolerateSystemErrors(() => fs.statSync(path))
  if (target?.isSocket() !== true) return false
  return ['self', '1'].some((pid) => {
    const table = tolerateSystemErrors(() => fs.readFileSync(`/proc/${pid}/net/unix`, 'utf8')) ?? ''
    return [...table.matchAll(ROW)].some(([, flags = '', bound = '']) => {
      if ((Number.parseInt(flags, 16) & LISTENING_FLAG) === 0) return false
      const socket = tolerateSystemErrors(() => fs.statSync(bound))
      return socket?.ino === target.ino && socket.dev === target.dev
    })
  })
}
