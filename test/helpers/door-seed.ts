/** Names the seed of the tenth of attacks and faults that runs through a resident worker in the gate. */
export const SEED_VARIABLE = 'MODEKEEP_TEST_SEED'

export const DEFAULT_SEED = 1

/** @throws {Error} if the variable is no number from 1 on */
export function readSeed(): number {
  const text = process.env[SEED_VARIABLE] ?? String(DEFAULT_SEED)
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`${SEED_VARIABLE} wants a number from 1 on, got ${text}`)
  return Number(text)
}
