import * as fs from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'

/** __SO_ACCEPTCON (include/uapi/linux/net.h), as /proc/net/unix has it: somebody listens. */
const LISTENING_FLAG = 0x10000

// Num, RefCount, Protocol, Flags, Type, St, Inode, Path; the last only where it has a name.
const ROW = /^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) [0-9A-F]+ [0-9A-F]+ +\d+ (\/.*)$/gm

/**
 * Whether somebody listens at a Unix socket, by the kernel's tables of the network namespaces of this process and of the
 * node's first: who listens is not bothered.
 * @param path links are followed, as `/var/run` is one
 */
export function isListening(path: string): boolean {
  const there = tolerateSystemErrors(() => fs.statSync(path))
  if (there?.isSocket() !== true) return false
  return ['self', '1'].some((pid) => {
    const table = tolerateSystemErrors(() => fs.readFileSync(`/proc/${pid}/net/unix`, 'utf8')) ?? ''
    return [...table.matchAll(ROW)].some(([, flags = '', bound = '']) => {
      if ((Number.parseInt(flags, 16) & LISTENING_FLAG) === 0) return false
      const it = tolerateSystemErrors(() => fs.statSync(bound))
      return it?.ino === there.ino && it.dev === there.dev
    })
  })
}
