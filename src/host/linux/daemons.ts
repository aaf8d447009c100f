import type { Daemon, Daemons } from '../daemons.ts'
import { MARK } from '../helpers.ts'
import { argumentsOf, environmentOf, killProcess, processIds, statOf } from './processes.ts'

export const linuxDaemons: Daemons = {
  find,

  // Kubelet's calls for what the kernel mounts alone do not pay for what runs programs.
  answers: async (parent, name, milliseconds) => (await import('./answers.ts')).answers(parent, name, milliseconds),

  below: (directory) => [...below(directory)],

  // Each as soon as it is found: by the end of a long table a number may be another process's.
  kill(directory) {
    for (const pid of below(directory)) killProcess(pid)
  },
}

function* below(directory: string): Generator<number> {
  for (const { pid, args } of processes()) if (args.includes(`${directory}/`) && isMarked(pid)) yield pid
}

function find(argument: string): Daemon | undefined {
  for (const { pid, args } of processes()) {
    if (!args.split('\0').includes(argument) || !isMarked(pid)) continue
    const stat = statOf(pid)
    if (stat) return { pid, state: stat.state }
  }
  return undefined
}

/** Anybody may have such arguments: what modekeep has started has its mark too. */
function isMarked(pid: number): boolean {
  return environmentOf(pid).includes(`${MARK}=`)
}

function* processes(): Generator<{ pid: number; args: string }> {
  for (const pid of processIds()) {
    const args = pid === process.pid ? '' : argumentsOf(pid)
    if (args !== '') yield { pid, args }
  }
}
