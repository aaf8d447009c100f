import { createRandom } from '../helpers/numbers.ts'
import type { Job } from './every-fault.ts'

const SHARE = 10

/** Returns the indexes of a tenth of the system calls, at least one, each with one of the faults. */
export function drawTenth(jobs: readonly Job[], seed: number): number[] {
  const random = createRandom(seed)
  const pointsByName = Map.groupBy(jobs.keys(), (index) => `${jobs[index]?.point.name} ${jobs[index]?.point.when}`)
  const order = [...pointsByName.values()].map((indexes) => ({ indexes, place: random() }))
  const drawn = order.sort((a, b) => a.place - b.place).slice(0, Math.ceil(order.length / SHARE))
  return drawn.map(({ indexes }) => indexes[Math.floor(random() * indexes.length)] ?? 0)
}
