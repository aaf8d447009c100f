import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

/** What takes minutes and gigabytes of memory, and is run by a command of its own: npm run test:scale. */
export default defineConfig({
  test: { ...base.test, include: ['test/scale/*.scale.ts'], testTimeout: 1_800_000, hookTimeout: 600_000 },
})
