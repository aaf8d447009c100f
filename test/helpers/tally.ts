import * as fs from 'node:fs'

/** How the tests of a run ended. */
export interface Tally {
  passed: number
  failed: number
  skipped: number
}

/** Names the file in which the parts of a run leave their counts for the one closing line. */
export const TALLY_FILE = 'MODEKEEP_TEST_TALLY'

const lineOf = ({ passed, failed, skipped }: Tally) => `\n${passed} passed, ${failed} failed, ${skipped} skipped\n`

/** Ends a run with one line that a machine can read. A part of a greater run leaves that to it. */
export function closeWith(tally: Tally): void {
  const file = process.env[TALLY_FILE]
  if (file) fs.writeFileSync(file, JSON.stringify(tally))
  else process.stdout.write(lineOf(tally))
}
