import fc, { type Arbitrary } from 'fast-check'
import { vi } from 'vitest'
import { PATIENCE, sized } from '../helpers/size.ts'

// The same inputs in every run; MODEKEEP_TEST_SEED=N gives others.
export const SEED = Number(process.env.MODEKEEP_TEST_SEED ?? 20_251_121)

vi.setConfig({ testTimeout: PATIENCE })

export const runs = (usual: number) => sized(Math.ceil(usual / 4), Math.ceil(usual / 2), usual * 20)

/**
 * Tries a promise on random inputs. A failure prints the smallest input that was found, the seed and the path to it.
 * @param usual how many inputs a long run can afford
 */
export function holds<T>(inputs: Arbitrary<T>, promise: (input: T) => void, usual: number): void {
  fc.assert(fc.property(inputs, promise), { seed: SEED, numRuns: runs(usual) })
}

/** The same for a promise about what takes a while. Shrinking calls it again and again, so it is cut off. */
export async function holdsAsync<T>(
  inputs: Arbitrary<T>,
  promise: (input: T) => Promise<void>,
  usual: number,
): Promise<void> {
  const property = fc.asyncProperty(inputs, promise)
  await fc.assert(property, { seed: SEED, numRuns: runs(usual), interruptAfterTimeLimit: PATIENCE / 2 })
}
