import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { ClosingLine } from './test/helpers/closing-line.ts'
import { LongFirst } from './test/helpers/long-first.ts'
import { ownMounts } from './test/helpers/own-mounts.ts'
import { PATIENCE } from './test/helpers/size.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: ownMounts,
    // One fewer is the default; most files wait for a program half of the time.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
    testTimeout: PATIENCE,
    hookTimeout: PATIENCE,
    reporters: ['default', new ClosingLine()],
  },
})
