import { writeResults } from '../helpers/results.ts'
import { sumTallies } from '../helpers/tally.ts'
import type { KernelResults } from './report.ts'

/** Writes which kernels a run had, and how its cases ended, for the table in the README. */
export function writeLabResults(file: string, results: readonly KernelResults[]): void {
  const kernel = results.map((result) => result.kernel.name)
  const kernelPackages = results.map(
    ({ kernel: { packageName, packageVersion, suite } }) => `${packageName} ${packageVersion} of Debian ${suite}`,
  )
  const processors = [...new Set(results.map((result) => PROCESSOR_NAMES[result.kernel.arch]))]
  const more = { kernel, kernelPackages, processor: processors.join(' and ') }
  writeResults(file, 'test:vm', sumTallies(results.map(({ tally }) => tally)), more)
}

/** As `uname -m` has them. */
const PROCESSOR_NAMES = { x64: 'x86_64', arm64: 'aarch64' } as const
