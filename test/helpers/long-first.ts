import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isSized } from '../../scripts/test/selection.ts'

/** What takes long whatever the size of the run. */
const LONG = /\/test\/(crash|race|scale|soak|install)\//

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    // Last, they would run while all other CPUs have nothing to do.
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId) || isSized(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
