import { defineConfig } from 'vitest/config'
import { ClosingLine } from './test/helpers/closing-line.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    execArgv: ['--disable-warning=ExperimentalWarning'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default', new ClosingLine()],
  },
})
