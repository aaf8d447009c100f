import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes a minute and more: last, it would run while all other CPUs have nothing to do. */
const LONG = /\/test\/(crash|race|scale|soak)\/|\/(hundred-pods|interrupted|gapless)\.test\.ts$/

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
