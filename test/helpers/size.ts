/**
 * How much a run does of what can be done again and again: `npm test` a share, `npm run test:long` (long) what an hour has
 * room for, and MODEKEEP_TEST_SIZE=full everything, for hours. `npm run test:long` chooses
 * the files that ask here.
 */
export type Size = 'short' | 'long' | 'full'

const SIZES: readonly Size[] = ['short', 'long', 'full']

export const SIZE: Size = SIZES.find((size) => size === process.env.MODEKEEP_TEST_SIZE) ?? 'short'
/** `npm run test:unit`: nothing but memory. */
export const UNIT = process.env.MODEKEEP_TEST_SIZE === 'unit'
export const FULL = SIZE === 'full'

/** What fits the size of the run. */
export function sized<T>(short: T, long: T, full: T = long): T {
  return { short, long, full }[SIZE]
}

/** Milliseconds that a test of many calls may take: a safety net, for a machine that is slow or busy. */
export const PATIENCE = sized(1_800_000, 3_600_000, 12 * 3_600_000)
