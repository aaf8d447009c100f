import { readdirSync } from 'node:fs'
import { readText } from '../read-text.ts'

/** What proc(5) says of a process that still runs. */
export interface ProcessStat {
  /** One letter: R, S, D, T (stopped), … */
  state: string
  group: number
  session: number
  /** In clock ticks after the boot: tells it from a later process of its number. */
  start: string
}

export function processIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** Undefined for one that has ended, whether or not its parent has waited for it. */
export function statOf(pid: number): ProcessStat | undefined {
  // They follow the name, which may itself hold parentheses.
  const fields = textOf(pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  const [state = '', , group, session] = fields
  if (!/^[^ZX]$/.test(state)) return undefined
  return { state, group: Number(group), session: Number(session), start: fields[19] ?? '' }
}

/** Its arguments, each ended by a NUL; '' for one that has ended, or is about to. */
export function argumentsOf(pid: number): string {
  return textOf(pid, 'cmdline')
}

/** What it was started with as `NAME=value`, each ended by a NUL. */
export function environmentOf(pid: number): string {
  return textOf(pid, 'environ')
}

export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

function textOf(pid: number, file: 'stat' | 'cmdline' | 'environ'): string {
  try {
    return readText(`/proc/${pid}/${file}`)
  } catch {
    return ''
  }
}
