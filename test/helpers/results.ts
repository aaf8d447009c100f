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
  fs.mkdirSync(dirname(file), { recursive: true })
  fs.writeFileSync(file, `${joinShortLists(JSON.stringify(result, null, 2))}\n`)
}

const LINE_COLUMNS = 120

/** Puts a list on one line where it fits, as the formatter has it. */
function joinShortLists(text: string): string {
  return text.replace(/^( *"\w+": )(\[[^\]]*\])/gm, (all, key: string, list: string) => {
    const line = `${key}[${JSON.parse(list)
      .map((item: unknown) => JSON.stringify(item))
      .join(', ')}]`
    // A comma may follow.
    return line.length < LINE_COLUMNS ? line : all
  })
}

/** The machine's, as os-release(5) has it: "Debian 12" is enough of "Debian GNU/Linux 12 (bookworm)". */
function distribution(): string | undefined {
  const [, name = ''] = /^PRETTY_NAME="?([^"\n]*)/m.exec(fs.readFileSync('/etc/os-release', 'utf8')) ?? []
  return name.replace(' GNU/Linux', '').replace(/ \(.*/, '') || undefined
}
