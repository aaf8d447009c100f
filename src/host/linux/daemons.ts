import { readdirSync } from 'node:fs'
import type { Daemon, Daemons } from '../daemons.ts'
import { MARK } from '../helpers.ts'
import { readText } from '../read-text.ts'

export const linuxDaemons: Daemons = {
  find,

  // Kubelet's calls for what the kernel mounts alone do not pay for what runs programs.
  answers: async (parent, name, milliseconds) => (await import('./answers.ts')).answers(parent, name, milliseconds),

  below: (directory) => [...below(directory)],

  // Each as soon as it is found: by the end of a long table a number may be another process's.
  kill(directory) {
    for (const pid of below(directory)) end(pid)
  },
}

function* below(directory: string): Generator<number> {
  for (const { pid, args } of processes()) if (args.includes(`${directory}/`) && isMarked(pid)) yield pid
}

function find(argument: string): Daemon | undefined {
  for (const { pid, args } of processes()) {
    if (!args.split('\0').includes(argument) || !isMarked(pid)) continue
    const state = /\) (\S)/.exec(read(`/proc/${pid}/stat`))?.[1]
    if (state !== undefined && state !== 'Z' && state !== 'X') return { pid, state }
  }
  return undefined
}

/** Anybody may have such arguments: what modekeep has started has its mark too. */
function isMarked(pid: number): boolean {
  return read(`/proc/${pid}/environ`).includes(`${MARK}=`)
}

/** One that has ended, or is about to, has no arguments. */
function* processes(): Generator<{ pid: number; args: string }> {
  for (const name of readdirSync('/proc')) {
    const pid = /^\d+$/.test(name) ? Number(name) : process.pid
    const args = pid === process.pid ? '' : read(`/proc/${pid}/cmdline`)
    if (args !== '') yield { pid, args }
  }
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
    return readText(path)
  } catch {
    return ''
  }
}
