import { availableParallelism } from 'node:os'
import { drawTenth } from './draw.ts'
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
  /** FlexVolume calls go to a resident worker, and faults befall that worker. */
  isDoor?: boolean
  /** Draws a tenth of the system calls, each with one of the faults; instead of `every` and `most`. */
  seed?: number | undefined
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
  /** Of these, how many commands came to the fault. */
  struck: number
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
  const workers = Array.from({ length: asked.workers ?? availableParallelism() }, () => new Worker(asked.isDoor))
  const rows = new Map<string, Row>()
  const failures: string[] = []
  const withoutDoor: CommandName[] = []
  try {
    for (const [number, { command, hasDoor }] of SCENARIOS.entries()) {
      if (!asked.commands.includes(command)) continue
      if (asked.isDoor && !hasDoor) {
        withoutDoor.push(command)
        continue
      }
      const [first] = workers
      if (first === undefined) throw new Error('no worker')
      const { title, jobs } = await first.jobsOf(number, asked.faults)
      if (!title.includes(asked.only)) continue
      for (const { fault } of jobs) rowOf(rows, command, fault).calls++
      const count = Math.min(asked.most ?? jobs.length, Math.ceil(jobs.length / asked.every))
      const chosen = asked.seed === undefined ? spread(jobs, count, number) : drawTenth(jobs, asked.seed + number)
      const turns = chosen.entries()
      await Promise.all(
        workers.map((worker) => takeTurns(worker, number, command, { all: jobs, turns }, rows, failures, asked)),
      )
      asked.tell?.(`${title}: ${chosen.length} of ${jobs.length} tried`)
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.close()))
  }
  for (const [command, { length }] of Map.groupBy(withoutDoor, (name) => name))
    asked.tell?.(`${command}: ${length} situations left out, which are no FlexVolume calls`)
  return { rows: [...rows.values()], failures, seconds: (performance.now() - started) / 1000 }
}

/** Returns the indexes of `count` jobs at even distances, other ones for each scenario. */
function spread(jobs: readonly Job[], count: number, scenario: number): number[] {
  const distance = jobs.length / count
  const shift = (scenario * ELSEWHERE) % Math.max(1, Math.floor(distance))
  return Array.from({ length: count }, (_, turn) => Math.floor(turn * distance) + shift)
}

/** How many of the following jobs are tried in place of one that struck no call of the command. */
const REPLACEMENTS = 4

/** @param jobs `turns` (turn and index) is shared with the other workers */
async function takeTurns(
  worker: Worker,
  scenario: number,
  command: CommandName,
  { all, turns }: { all: readonly Job[]; turns: IterableIterator<[number, number]> },
  rows: Map<string, Row>,
  failures: string[],
  { most, tell }: Asked,
): Promise<void> {
  const replacements = most === undefined ? 0 : REPLACEMENTS
  for (const [turn, index] of turns) {
    for (const job of all.slice(index, index + 1 + replacements)) {
      const { failure, missed, reached } = await worker.strike(scenario, { ...job, turn })
      if (missed) continue
      const row = rowOf(rows, command, job.fault)
      row.tried++
      if (reached) row.struck++
      if (failure === undefined) row.survived++
      else {
        failures.push(failure)
        tell?.(`NOT SURVIVED ${failure}`)
      }
      break
    }
  }
}

function rowOf(rows: Map<string, Row>, command: CommandName, fault: Fault): Row {
  const key = `${command} ${inWords(fault)}`
  const row = rows.get(key) ?? { command, fault: inWords(fault), calls: 0, tried: 0, struck: 0, survived: 0 }
  rows.set(key, row)
  return row
}
