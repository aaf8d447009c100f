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

  kill(argument) {
    const daemon = find(argument)
    if (daemon) process.kill(daemon.pid, 'SIGKILL')
  },
}

function find(argument: string): Daemon | undefined {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    // One that has ended, or is about to, has no arguments.
    if (!read(`/proc/${name}/cmdline`).split('\0').includes(argument)) continue
    const state = /\) (\S)/.exec(read(`/proc/${name}/stat`))?.[1]
    if (state !== undefined && state !== 'Z' && state !== 'X') return { pid: Number(name), state }
  }
  return undefined
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
