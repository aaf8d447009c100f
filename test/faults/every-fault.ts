import type { FaultPoint } from '../helpers/inject.ts'
import { type Fault, inWords } from './fault.ts'
import type { Injector } from './injector.ts'
import { isNodesEnd } from './own-calls.ts'
import type { Scenario } from './scenario.ts'

/** One fault at one system call. */
export interface Job {
  point: FaultPoint
  fault: Fault
  turn: number
}

export interface Outcome {
  /** False: the command ended before it came to that call, and must have ended right. */
  reached: boolean
  /** What was struck is no call of the command's: nothing was tried. */
  missed?: boolean
  /** What did not hold, and where. */
  failure?: string
}

/**
 * What changes a volume or a mount: traced beside the call that fails, to see that nothing follows what had to precede it;
 * and what opens the handles by which files are renamed.
 */
const CHANGES = 'openat,fchownat,setxattr,removexattr,move_mount,write,pwrite64,fsync,fdatasync,rename'

/** All that can befall a command, in the order of its system calls. */
export async function jobsOf(scenario: Scenario, injector: Injector, faults: readonly Fault[]): Promise<Job[]> {
  await injector.prepare(scenario)
  const { ended, calls } = await injector.trace(scenario.program())
  const { top } = scenario.program()
  const points = scenario.points(ended, calls).map((point) => elsewhere(point, top))
  const jobs = faults.flatMap((fault) => points.map((point) => ({ point, fault })))
  const possible = jobs.filter(({ point, fault }) => !fault.lasts || !OF_NODE_TOO.test(point.name))
  return possible.map((job, turn) => ({ ...job, turn }))
}

/** Node's own later calls would fail too: its event loop ends it by a signal where it cannot read, write or close. */
const OF_NODE_TOO = /^(close|fcntl|fstat|read|write)$/

/** Paths are named as they are in every stage. */
function elsewhere({ name, when, text, path }: FaultPoint, top: string): FaultPoint {
  return { name, when, text: text.replaceAll(top, TOP), path: path?.replace(top, TOP) }
}

const TOP = '{top}'

/** Prepares, strikes, checks. */
export async function strike(scenario: Scenario, injector: Injector, { point, fault, turn }: Job): Promise<Outcome> {
  let reached = false
  try {
    await injector.prepare(scenario)
    const program = scenario.program()
    const here = { ...point, path: point.path?.replace(TOP, program.top) }
    const run = await injector.inject(program, here, fault, fault.name === 'KILL' || here.path ? '' : CHANGES)
    reached = run.reached
    const struck = run.calls.find(({ injected }) => injected)
    if ((struck && scenario.isRuntimes?.(struck)) || run.calls.some(isNodesEnd)) return { reached, missed: true }
    if (run.ended.hung) throw new Error('it does not end')
    try {
      await scenario.check({ point, fault, turn, ended: run.ended, calls: run.calls, reached })
    } catch (error) {
      const { code, signal, text, errors } = run.ended
      const said = JSON.stringify({ code, signal, text, errors })
      const where = struck?.text.replaceAll(program.top, TOP) ?? 'nothing'
      throw new Error(`it said ${said}\nstruck: ${where}`, { cause: error })
    }
    return { reached }
  } catch (error) {
    const where = `${scenario.title}: ${inWords(fault)} at ${point.name} ${point.when}${point.path ? ` on ${point.path}` : ''}`
    return { reached, failure: `${where}, in place of: ${point.text}\n${causes(error)}` }
  }
}

function causes(error: unknown): string {
  const lines: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) lines.push(`  ${plain(at.message).split('\n').join('\n  ')}`)
  return lines.join('\n')
}

/** Without the colours that assertions have on a terminal. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one
  return text.replace(/\x1b\[[0-9;]*m/g, '')
}
