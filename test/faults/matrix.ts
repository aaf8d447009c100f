import { availableParallelism } from 'node:os'
import type { Job } from './every-fault.ts'
import { type Fault, inWords } from './fault.ts'
import { Worker } from './pool.ts'
import type { CommandName } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'

export interface Asked {
  commands: readonly CommandName[]
  faults: readonly Fault[]
  /** The how-many-th of all that can befall a command is tried: each time the same, in other places for each scenario. */
  every: number
  /** No more than so many in each situation, spread evenly. */
  most?: number
  /** Only scenarios with this in their title. */
  only: string
  /** How many at a time, two for two processors unless it is said. */
  workers?: number
  tell?(text: string): void
}

/** What befell one command by one fault. */
export interface Row {
  command: CommandName
  fault: string
  /** Where it can strike. */
  calls: number
  tried: number
  survived: number
}

export interface Result {
  rows: Row[]
  failures: string[]
  seconds: number
}

// Of similar situations other places are tried.
const ELSEWHERE = 7

/** Runs the matrix, several stages at a time. */
export async function runMatrix(asked: Asked): Promise<Result> {
  const started = performance.now()
  const workers = Array.from({ length: asked.workers ?? availableParallelism() }, () => new Worker())
  const rows = new Map<string, Row>()
  const failures: string[] = []
  try {
    for (const [number, { command }] of SCENARIOS.entries()) {
      if (!asked.commands.includes(command)) continue
      const [first] = workers
      if (first === undefined) throw new Error('no worker')
      const { title, jobs } = await first.jobsOf(number, asked.faults)
      if (!title.includes(asked.only)) continue
      for (const { fault } of jobs) rowOf(rows, command, fault).calls++
      const step = Math.max(asked.every, Math.ceil(jobs.length / (asked.most ?? Number.POSITIVE_INFINITY)))
      const chosen = jobs.filter((_, index) => index % step === (number * ELSEWHERE) % step)
      const turns = chosen.entries()
      await Promise.all(workers.map((worker) => takeTurns(worker, number, command, turns, rows, failures, asked)))
      asked.tell?.(`${title}: ${chosen.length} of ${jobs.length} tried`)
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.close()))
  }
  return { rows: [...rows.values()], failures, seconds: (performance.now() - started) / 1000 }
}

/** @param jobs shared with the other workers */
async function takeTurns(
  worker: Worker,
  scenario: number,
  command: CommandName,
  jobs: IterableIterator<[number, Job]>,
  rows: Map<string, Row>,
  failures: string[],
  { tell }: Asked,
): Promise<void> {
  for (const [turn, job] of jobs) {
    const { failure, missed } = await worker.strike(scenario, { ...job, turn })
    if (missed) continue
    const row = rowOf(rows, command, job.fault)
    row.tried++
    if (failure === undefined) row.survived++
    else {
      failures.push(failure)
      tell?.(`NOT SURVIVED ${failure}`)
    }
  }
}

function rowOf(rows: Map<string, Row>, command: CommandName, fault: Fault): Row {
  const key = `${command} ${inWords(fault)}`
  const row = rows.get(key) ?? { command, fault: inWords(fault), calls: 0, tried: 0, survived: 0 }
  rows.set(key, row)
  return row
}
