import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isSizedTestFile } from '../../scripts/test/selection.ts'

/**
 * Files that take more than half a minute in a short run or a minute in a long one, in the order in which they begin.
 * Those that mostly wait for deadlines run beside those that need the CPU. Vitest sorts by file size.
 */
const SLOWEST = [
  'test/state/locks.test.ts',
  'test/attacks/hanging-request.test.ts',
  'test/crash/killed-orphan.test.ts',
  'test/attacks/hanging-walk.test.ts',
  'test/binary/csi-lasting.test.ts',
  'test/attacks/held-lookup.test.ts',
  'test/differential/grant.test.ts',
  'test/faults/sample.test.ts',
  'test/attacks/held-root.test.ts',
  'test/crash/killed-import.test.ts',
  'test/attacks/hanging-server.test.ts',
  'test/binary/terminal.test.ts',
  'test/block/killed.test.ts',
  'test/real-mounts/loop-device.test.ts',
  'test/attacks/held-directory.test.ts',
  'test/binary/csi.test.ts',
  'test/container/crashed-tasks.kernel.test.ts',
  'test/binary/build.test.ts',
  'test/soak/bounded.test.ts',
  'test/install/interrupted.test.ts',
  'test/release/release.test.ts',
  'test/real-mounts/gapless.test.ts',
  'test/crash/random-times.test.ts',
]

/** Folders of files that take long in every run. */
const LONG = /\/test\/(attacks|block|crash|fuse|install|race|scale|soak)\//

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    // Last, they would run while all other CPUs have nothing to do.
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId) || isSizedTestFile(moduleId)
    const rank = (file: TestSpecification) => {
      const place = SLOWEST.findIndex((path) => file.moduleId.endsWith(`/${path}`))
      if (place !== -1) return place
      return isLong(file) ? SLOWEST.length : SLOWEST.length + 1
    }
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}
