/**
 * How much a run does of what can be done again and again: `npm test` a share, `npm run test:long` (long) more,
 * and MODEKEEP_TEST_SIZE=full everything, for hours. `npm run test:long` chooses the files that ask `sized`. Its share stays
 * small where it has more, as the gate runs both.
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

/** What fits a run of everything, in a file that does the same in all others. */
export function fullSized<T>(usual: T, full: T): T {
  return FULL ? full : usual
}

/** Milliseconds that a test of many calls may take: a safety net, for a machine that is slow or busy. */
export const PATIENCE = sized(1_800_000, 3_600_000, 12 * 3_600_000)
