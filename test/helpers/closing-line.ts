import type { SerializedError } from 'vitest'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { RESULTS_FILE, writeResults } from './results.ts'
import { closeWith } from './tally.ts'

/**
 * Ends the run with the reason of every skipped test, the name and message of every failed one, and one line that a
 * machine can read: who keeps but the end of a long output has what failed.
 */
export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], elsewhere: readonly SerializedError[]): void {
    const tried = new Map<string, boolean>()
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    const reasons = new Map<string, number>()
    const failures: string[] = []
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const result = test.result()
        count[result.state]++
        for (const fileSystem of result.state === 'skipped' ? [] : fileSystemsIn(test.fullName))
          tried.set(fileSystem, result.state === 'passed' && tried.get(fileSystem) !== false)
        if (result.state === 'failed')
          failures.push(failure(`${module.relativeModuleId} > ${test.fullName}`, result.errors))
        if (result.state !== 'skipped') continue
        const reason = result.note ?? reasonOf(test)
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
      }
      // A file that could not even be loaded has no tests to fail.
      if (module.errors().length === 0) continue
      count.failed++
      failures.push(failure(module.relativeModuleId, module.errors()))
    }
    if (elsewhere.length > 0) {
      count.failed++
      failures.push(failure('outside of every test', elsewhere))
    }
    for (const [reason, times] of reasons) process.stdout.write(`\nskipped ${times}: ${reason}`)
    if (reasons.size > 0) process.stdout.write('\n')
    for (const text of failures) process.stdout.write(`\nfailed: ${text}\n`)
    const tally = { passed: count.passed, failed: count.failed, skipped: count.skipped + count.pending }
    const file = process.env[RESULTS_FILE]
    const fileSystems = [...tried].filter(([, isFine]) => isFine).map(([name]) => name)
    if (file) writeResults(file, 'test', tally, { fileSystems: fileSystems.sort() })
    closeWith(tally)
  }
}

const MOST_OF_MESSAGE = 1500

function failure(name: string, errors: readonly { message: string }[]): string {
  const messages = errors.map(({ message }) => message.slice(0, MOST_OF_MESSAGE))
  return [name, ...messages].join('\n').replaceAll('\n', '\n  ')
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
