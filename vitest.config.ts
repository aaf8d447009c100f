import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { ClosingLine } from './test/helpers/closing-line.ts'
import { DOOR_RUN } from './test/helpers/door-run.ts'
import { LongFirst } from './test/helpers/long-first.ts'
import { ownMounts } from './test/helpers/own-mounts.ts'
import { PATIENCE } from './test/helpers/size.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: ownMounts,
    // Files wait for deadlines and programs most of the time, so the CPUs serve three each.
    maxWorkers: 3 * availableParallelism(),
    sequence: { sequencer: LongFirst },
    setupFiles: DOOR_RUN ? ['test/helpers/door-setup.ts'] : [],
    testTimeout: PATIENCE,
    hookTimeout: PATIENCE,
    // The default of a second is too short where every CPU is busy.
    expect: { poll: { timeout: 15_000 } },
    reporters: ['default', new ClosingLine()],
  },
})
