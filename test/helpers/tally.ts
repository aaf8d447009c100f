import * as fs from 'node:fs'

/** How the tests of a run ended. */
export interface Tally {
  passed: number
  failed: number
  skipped: number
}

/** Names the file in which a part of a run leaves its counts for the one closing line. */
export const TALLY_FILE = 'MODEKEEP_TEST_TALLY'

/** Ends a run with one line that a machine can read. A part of a greater run leaves that to it. */
export function closeWith(tally: Tally): void {
  const file = process.env[TALLY_FILE]
  if (file) fs.writeFileSync(file, JSON.stringify(tally))
  else process.stdout.write(`\n${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped\n`)
}

/** What a part has left, whose end the exit status tells: one that could not even begin has failed once. */
export function tallyOf(file: string, status: number): Tally {
  const nothing: Tally = { passed: 0, failed: 0, skipped: 0 }
  const tally: Tally = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : nothing
  return status !== 0 && tally.failed === 0 ? { ...tally, failed: 1 } : tally
}

export function sum(tallies: readonly Tally[]): Tally {
  const total = (key: keyof Tally) => tallies.reduce((all, tally) => all + tally[key], 0)
  return { passed: total('passed'), failed: total('failed'), skipped: total('skipped') }
}
