import * as fs from 'node:fs'
import { release } from 'node:os'
import type { Diagnosis } from '../diagnosis.ts'
import { tolerateSystemErrors } from '../file-error.ts'
import { createNodeFiles } from '../node-files.ts'
import { probeFeatures } from './probe.ts'
import { findProgram, SYSTEM_PATH } from './programs.ts'
import { selfTest } from './self-test.ts'

export const linuxDiagnosis: Diagnosis = {
  features: probeFeatures,
  release,
  selfTest,
  findProgram: (program) => findProgram(program, SYSTEM_PATH),

  space(path) {
    const { bsize, bavail, files, ffree } = fs.statfsSync(path)
    return { bytes: bsize * bavail, inodes: files === 0 ? undefined : ffree }
  },

  isSameFile: createNodeFiles(fs).isSame,
  isListening,
}

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
