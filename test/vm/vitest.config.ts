import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

/** Where a guest leaves how its tests ended. */
const RESULTS = '/exchange/tests.json'

/** Tests in a guest of the lab, which has one slow processor: npm run test:vm. */
export default defineConfig({
  test: {
    ...base.test,
    include: ['test/vm/**/*.vm.ts', 'test/**/*.test.ts'],
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', ['json', { outputFile: RESULTS }]],
  },
})
