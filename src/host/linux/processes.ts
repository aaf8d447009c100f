import { readdirSync } from 'node:fs'
import { waitFor } from '../back-off.ts'
import { unlessRefused } from '../file-error.ts'
import { MARK } from '../helpers.ts'
import type { Daemons } from '../host.ts'
import { readText } from '../read-file.ts'

/** What proc(5) says of a process that still runs. */
interface ProcessStat {
  /** One letter: R, S, D, T (stopped), … */
  state: string
  group: number
  session: number
  /** In clock ticks after the boot: tells it from a later process of its number. */
  start: string
}

/** Undefined for one that has ended, whether or not its parent has waited for it. */
export function statOf(pid: number): ProcessStat | undefined {
  // They follow the name, which may itself hold parentheses.
  const fields = textOf(pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  const [state = '', , group, session] = fields
  if (!/^[^ZX]$/.test(state)) return undefined
  return { state, group: Number(group), session: Number(session), start: fields[19] ?? '' }
}

function processIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** Of arguments and variables each is ended by a NUL; '' for a process that has ended, or is about to. */
function textOf(pid: number, file: 'stat' | 'cmdline' | 'environ'): string {
  return unlessRefused(() => readText(`/proc/${pid}/${file}`)) ?? ''
}

function killProcess(pid: number): void {
  // It may have ended by itself.
  unlessRefused(() => process.kill(pid, 'SIGKILL'))
}

/** Sends a signal to all that is left of a helper's process group, which has its leader's id. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  unlessRefused(() => process.kill(-leader, signal))
}

const LONGEST_MS = 2000

/** Ends every process of a helper, of its session or with its mark. @returns false where the kernel holds one */
export function endAll(leader: number, mark: string): Promise<boolean> {
  const until = performance.now() + LONGEST_MS
  return waitFor(() => {
    const left = processesOf(leader, mark)
    if (left.length === 0) return true
    if (performance.now() > until) return false
    for (const pid of left) killProcess(pid)
    return undefined
  })
}

/** Those that still run; a zombie does not. */
export function processesOf(leader: number, mark: string): number[] {
  return processIds().filter((pid) => {
    const stat = statOf(pid)
    if (stat === undefined) return false
    if (stat.group === leader || stat.session === leader) return true
    return textOf(pid, 'environ').split('\0').includes(`${MARK}=${mark}`)
  })
}

export const linuxDaemons: Daemons = {
  find(argument) {
    for (const pid of startedWith((args) => args.split('\0').includes(argument))) {
      const stat = statOf(pid)
      if (stat) return { pid, state: stat.state }
    }
    return undefined
  },

  // Kubelet's calls for what the kernel mounts alone do not pay for what runs programs.
  answers: async (parent, name, milliseconds) => (await import('./answers.ts')).answers(parent, name, milliseconds),

  below: (directory) => [...below(directory)],

  // Each as soon as it is found: by the end of a long table a number may be another process's.
  kill(directory) {
    for (const pid of below(directory)) killProcess(pid)
  },
}

function below(directory: string): Iterable<number> {
  return startedWith((args) => args.includes(`${directory}/`))
}

/** Anybody may have such arguments: what modekeep has started has its mark too. */
function* startedWith(isWanted: (args: string) => boolean): Generator<number> {
  for (const pid of processIds()) {
    if (pid === process.pid || !isWanted(textOf(pid, 'cmdline'))) continue
    if (textOf(pid, 'environ').includes(`${MARK}=`)) yield pid
  }
}
