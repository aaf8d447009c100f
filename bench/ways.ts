import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { ResidentWorker } from '../test/helpers/resident-worker.ts'
import { type Cost, pause } from './command.ts'
import { Node } from './peers/modekeep.ts'
import { readProcessorMs } from './processor.ts'
import { inOrder } from './statistics.ts'
import { resetTree } from './tree.ts'
import { settle } from './volume.ts'

const UNMEASURED_ROUNDS = 3
/** A volume in use has old ctimes. An inode that changed within the last second is inspected twice. */
export const MIN_AGE_MS = 1300

/** Someone who does the same as the others. @returns what it took */
export type Contender = readonly [name: string, act: () => Cost]

/** The two ways of a call: by a process of its own, and by the worker of `heal --watch --answer-calls`. */
export class BothWays {
  /** Its calls have a process of their own. */
  readonly own: Node
  readonly #ready: Node
  readonly #worker: ResidentWorker

  constructor(directory: string, volumes: string) {
    this.own = new Node(directory, volumes)
    this.#ready = new Node(directory, volumes)
    this.#worker = new ResidentWorker(this.own.environment.MODEKEEP_CONFIG ?? '')
    this.own.environment.MODEKEEP_SOCKET = ''
    this.#ready.environment.MODEKEEP_SOCKET = this.#worker.socket
  }

  untilListening(): Promise<void> {
    return this.#worker.untilListening()
  }

  pair(act: (node: Node) => Cost): [own: Contender, ready: Contender] {
    return [
      ['own process', () => act(this.own)],
      ['ready worker', () => this.#addWorkersTime(() => act(this.#ready))],
    ]
  }

  #addWorkersTime(call: () => Cost): Cost {
    const before = readProcessorMs([this.#worker.pid])
    const cost = call()
    return { ...cost, user: cost.user + readProcessorMs([this.#worker.pid]) - before }
  }

  /** Around each first mount of a tree, which lies on a file system of its own at `at`. */
  turnsOfFirstMounts(at: string, tree: string): Turns {
    return {
      prepare: () => {
        this.own.forget()
        resetTree(tree)
        settle(at)
        pause(MIN_AGE_MS)
      },
      finish: () => this.unmount(),
    }
  }

  unmount(): void {
    if (fs.existsSync(this.own.directory)) this.own.unmount()
  }

  close(): Promise<void> {
    return this.#worker.close()
  }
}

export interface Turns {
  /** Before each act. */
  prepare?(): void
  /** After each act. */
  finish?(): void
  /** Rounds before those that count. */
  unmeasured?: number
}

/** The contenders take turns. @returns the costs of each, by its name */
export async function takeTurns(
  contenders: readonly Contender[],
  rounds: number,
  { prepare, finish, unmeasured = UNMEASURED_ROUNDS }: Turns,
): Promise<Map<string, Cost[]>> {
  const costs = new Map<string, Cost[]>(contenders.map(([name]) => [name, []]))
  for (let round = -unmeasured; round < rounds; round++) {
    for (const [name, act] of inOrder(contenders, round & 1)) {
      prepare?.()
      // The worker's reports are read meanwhile. Without a reader it would wait once its pipe is full.
      await setTimeout(1)
      const cost = act()
      if (round >= 0) costs.get(name)?.push(cost)
      finish?.()
    }
  }
  return costs
}
