import * as fs from 'node:fs'

/** How many tests of a run passed, failed and were skipped. */
export interface Counts {
  passed: number
  failed: number
  skipped: number
}

export interface Tally extends Counts {
  /** The name and message of each failed test, as `formatFailure` makes them. */
  failures: string[]
}

const MAX_MESSAGE_CHARACTERS = 1500

export function formatFailure(name: string, ...messages: readonly string[]): string {
  const texts = messages.map((message) => message.slice(0, MAX_MESSAGE_CHARACTERS))
  return [name, ...texts].join('\n').replaceAll('\n', '\n  ')
}

/** Lists the failures of cases. @param suite the command that runs them, `test:cluster` */
export function listFailures(
  suite: string,
  results: readonly { name: string; failure?: string | undefined }[],
): string[] {
  return results.flatMap(({ name, failure }) =>
    failure === undefined ? [] : [formatFailure(`${suite}: ${name}`, failure)],
  )
}

/** Names the file in which a part of a run leaves its counts for the one closing line. */
export const TALLY_FILE = 'MODEKEEP_TEST_TALLY'

/**
 * Ends a run with its failures and one line that a machine can read. A part of a greater run leaves both to that run,
 * so that the end of a long output has every failure.
 */
export function printTally(tally: Tally): void {
  const file = process.env[TALLY_FILE]
  if (file) fs.writeFileSync(file, JSON.stringify(tally))
  else {
    const failures = tally.failures.map((text) => `\nfailed: ${text}\n`).join('')
    process.stdout.write(`${failures}\n${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped\n`)
  }
}

/** Reads the tally that a part has left. A part that failed without a failed test, or without a tally, failed once. */
export function readTally(part: string, file: string, status: number): Tally {
  const nothing: Tally = { passed: 0, failed: 0, skipped: 0, failures: [] }
  const tally: Tally = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : nothing
  if (status === 0 || tally.failed > 0) return tally
  return { ...tally, failed: 1, failures: [`${part} ended with status ${status}`] }
}

export function sumTallies(tallies: readonly Tally[]): Tally {
  const total = (key: 'passed' | 'failed' | 'skipped') => tallies.reduce((all, tally) => all + tally[key], 0)
  const failures = tallies.flatMap((tally) => tally.failures)
  return { passed: total('passed'), failed: total('failed'), skipped: total('skipped'), failures }
}
