import type { SerializedError } from 'vitest'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { NOT_DRAWN } from './door-run.ts'
import { RESULTS_FILE, writeResults } from './results.ts'
import { formatFailure, printTally } from './tally.ts'

/** Ends the run with the reason of every skipped test, and with its tally. */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], elsewhere: readonly SerializedError[]): void {
    const tried = new Map<string, boolean>()
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    const reasons = new Map<string, number>()
    const failures: string[] = []
    const fail = (name: string, errors: readonly { message: string }[]) => {
      failures.push(formatFailure(name, ...errors.map(({ message }) => message)))
    }
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === 'skipped' && result.note === NOT_DRAWN) continue
        count[result.state]++
        for (const fileSystem of result.state === 'skipped' ? [] : fileSystemsIn(test.fullName))
          tried.set(fileSystem, result.state === 'passed' && tried.get(fileSystem) !== false)
        if (result.state === 'failed') fail(`${module.relativeModuleId} > ${test.fullName}`, result.errors)
        if (result.state !== 'skipped') continue
        const reason = result.note ?? reasonOf(test)
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
      }
      // A file that could not even be loaded has no tests to fail.
      if (module.errors().length === 0) continue
      count.failed++
      fail(module.relativeModuleId, module.errors())
    }
    if (elsewhere.length > 0) {
      count.failed++
      fail('outside of every test', elsewhere)
    }
    for (const [reason, times] of reasons) process.stdout.write(`\nskipped ${times}: ${reason}`)
    if (reasons.size > 0) process.stdout.write('\n')
    const tally = { passed: count.passed, failed: count.failed, skipped: count.skipped + count.pending, failures }
    const file = process.env[RESULTS_FILE]
    const fileSystems = [...tried].filter(([, isFine]) => isFine).map(([name]) => name)
    if (file) writeResults(file, 'test', tally, { fileSystems: fileSystems.sort() })
    printTally(tally)
  }
}

/** Tests of one name it in their titles. */
function fileSystemsIn(title: string): string[] {
  return title.match(/\b(ext4|xfs|btrfs|squashfs|tmpfs|overlayfs)\b/g) ?? []
}

/** Groups that cannot run say why in their title, or in that of a group around them. */
function reasonOf(test: TestCase): string {
  const names = [test.name]
  for (let group = test.parent; group.type === 'suite'; group = group.parent) names.push(group.name)
  return names.find((name) => name.includes('(skipped: ')) ?? names.at(-1) ?? test.name
}
