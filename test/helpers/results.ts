import * as fs from 'node:fs'
import { machine, release } from 'node:os'
import { dirname } from 'node:path'
import type { TestSuiteName } from '../../scripts/docs/results.ts'
import type { Counts } from './tally.ts'

/** Names the file in which a run leaves what it was made with and how it ended, for the table in the README. */
export const RESULTS_FILE = 'MODEKEEP_TEST_RESULTS'

/** @param more versions of what the run had in addition to this kernel; they replace what this machine has */
export function writeResults(
  file: string,
  suite: TestSuiteName,
  { passed, failed, skipped }: Counts,
  more: object,
): void {
  const date = new Date().toISOString().slice(0, 10)
  const on = { kernel: release(), distribution: distribution(), processor: machine() }
  const result = { suite, date, ...on, ...more, cases: { passed, failed, notRun: skipped } }
  const text = JSON.stringify(result, null, 2)
  fs.mkdirSync(dirname(file), { recursive: true })
  // A list on one line, as the formatter has it.
  fs.writeFileSync(
    file,
    `${text.replace(/\[[^\]]*\]/g, (list) => JSON.stringify(JSON.parse(list)).replaceAll(',', ', '))}\n`,
  )
}

/** The machine's, as os-release(5) has it: "Debian 12" is enough of "Debian GNU/Linux 12 (bookworm)". */
function distribution(): string | undefined {
  const [, name = ''] = /^PRETTY_NAME="?([^"\n]*)/m.exec(fs.readFileSync('/etc/os-release', 'utf8')) ?? []
  return name.replace(' GNU/Linux', '').replace(/ \(.*/, '') || undefined
}
