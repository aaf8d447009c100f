import type { Reporter, TestModule } from 'vitest/node'

/** Ends the run with one line that a machine can read, and with the reason of every skipped test. */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state]++
      // A file that could not even be loaded has no tests to fail.
      if (module.errors().length > 0) count.failed++
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`)
  }
}
