import { createRandom } from '../helpers/numbers.ts'
import type { KeptWrites, PowerCut } from './disk-log.ts'

const KEPT: readonly KeptWrites[] = ['none', 'half', 'all']

/**
 * Chooses the moments of a recorded run at which the power is cut: before and after each flush, then random ones. Of more
 * flushes than moments, a random part.
 * @param count number of moments
 * @param flushes indexes of the flushes
 * @param events number of events
 */
export function chooseMoments(
  count: number,
  { events, flushes }: { events: number; flushes: readonly number[] },
  disks: readonly string[],
  seed: number,
): PowerCut[] {
  const random = createRandom(seed)
  const boundaries = [...new Set([...flushes.flatMap((at) => [at, at + 1]), events])]
  const shuffled = boundaries.map((index) => ({ index, order: random() })).sort((a, b) => a.order - b.order)
  const chosen = shuffled.slice(0, count).map(({ index }) => index)
  while (chosen.length < count) chosen.push(Math.floor(random() * (events + 1)))
  return chosen.map((index, number) => ({
    index,
    kept: Object.fromEntries(disks.map((disk, at) => [disk, KEPT[Math.floor(number / 3 ** at) % 3] as KeptWrites])),
    seed: seed * 10_000 + number,
  }))
}

/** Names the numbers of the moments to run, such as 31-60, counted from 1. */
export const MOMENTS_VARIABLE = 'MODEKEEP_TEST_MOMENTS'

/** Returns the numbers of the moments to run. @throws {Error} if the text is no range */
export function selectMomentNumbers(count: number, range = process.env[MOMENTS_VARIABLE]): number[] {
  const all = Array.from({ length: count }, (_, index) => index + 1)
  if (range === undefined) return all
  const [, from, to] = /^(\d+)-(\d+)$/.exec(range) ?? []
  if (from === undefined) throw new Error(`${MOMENTS_VARIABLE} wants a range such as 31-60, got ${range}`)
  return all.filter((number) => number >= Number(from) && number <= Number(to))
}
