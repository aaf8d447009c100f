import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isSized } from '../../scripts/test/selection.ts'

/** Files that take more than a minute in a long run, in the order of their time. Vitest sorts by file size. */
const SLOWEST = [
  'test/crash/killed-orphan.test.ts',
  'test/binary/csi-lasting.test.ts',
  'test/differential/grant.test.ts',
  'test/faults/sample.test.ts',
  'test/crash/killed-import.test.ts',
  'test/soak/bounded.test.ts',
  'test/install/interrupted.test.ts',
  'test/release/release.test.ts',
  'test/kernel/gapless.test.ts',
  'test/crash/random-times.test.ts',
]

/** What takes long whatever the size of the run. */
const LONG = /\/test\/(crash|race|scale|soak|install)\//

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    // Last, they would run while all other CPUs have nothing to do.
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId) || isSized(moduleId)
    const rank = ({ moduleId }: TestSpecification) => {
      const place = SLOWEST.findIndex((file) => moduleId.endsWith(`/${file}`))
      return place === -1 ? SLOWEST.length : place
    }
    const long = sorted.filter(isLong).sort((a, b) => rank(a) - rank(b))
    return [...long, ...sorted.filter((file) => !isLong(file))]
  }
}
