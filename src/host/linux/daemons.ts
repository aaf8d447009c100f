import { promises, readdirSync, readFileSync } from 'node:fs'
import type { Daemon, Daemons } from '../daemons.ts'

export const linuxDaemons: Daemons = {
  find,

  async answers(path, milliseconds) {
    const { promise: deadline, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(resolve, milliseconds, false)
    const heard = () => true
    try {
      // FUSE and servers are always asked for this; from a cache comes nothing.
      return await Promise.race([promises.statfs(path).then(heard, heard), deadline])
    } finally {
      clearTimeout(timer)
    }
  },

  kill(directory) {
    for (const { pid, args } of processes()) if (args.includes(`${directory}/`)) end(pid)
  },
}

function find(argument: string): Daemon | undefined {
  for (const { pid, args } of processes()) {
    if (!args.split('\0').includes(argument)) continue
    const state = /\) (\S)/.exec(read(`/proc/${pid}/stat`))?.[1]
    if (state !== undefined && state !== 'Z' && state !== 'X') return { pid, state }
  }
  return undefined
}

/** One that has ended, or is about to, has no arguments. */
function processes(): { pid: number; args: string }[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids
    .map((pid) => ({ pid: Number(pid), args: read(`/proc/${pid}/cmdline`) }))
    .filter(({ pid }) => pid !== process.pid)
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
