import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import { printTally, TALLY_FILE } from './tally.ts'

/**
 * Ends this process with the exit code of a run, and with 2 if it throws: wrong usage, or not possible here. A part of a greater
 * run that is not possible here counts as skipped there.
 * @param command as npm has it
 * @param what a greater run does without
 */
export function exitAfterRun(run: Promise<number>, command: string, what: string): void {
  run.then(
    (code) => process.exit(code),
    (error) => {
      const reason = error instanceof Error ? error.message : String(error)
      // What the machine lacks is no failure of a greater run.
      if (error instanceof UnavailableError && process.env[TALLY_FILE]) {
        console.log(`\nskipped 1: ${what} (skipped: ${reason})`)
        printTally({ passed: 0, failed: 0, skipped: 1, failures: [] })
        process.exit(0)
      }
      console.error(`${command}: ${reason}`)
      process.exit(2)
    },
  )
}
