import { writeResults } from '../helpers/results.ts'
import { sumTallies } from '../helpers/tally.ts'
import type { KernelResults } from './run.ts'

/** Writes which kernels a run had, and how its cases ended, for the table in the README. */
export function writeLabResults(file: string, results: readonly KernelResults[]): void {
  const kernel = results.map((result) => result.kernel.release)
  const kernelPackages = results.map(
    (result) => `user-mode-linux ${result.kernel.packageVersion} of Debian ${result.kernel.suite}`,
  )
  writeResults(file, 'test:vm', sumTallies(results.map(({ tally }) => tally)), { kernel, kernelPackages })
}
