import { progressText } from '../src/operator/text/progress.ts'
import type { WalkCounts } from '../src/ownership/walk/report.ts'
import { writeAll } from './streams.ts'

const STDERR = 2
const FIRST_AFTER = 1000
const EACH = 200
const NARROW = 80

/** One line on stderr that is written over, from a second on (all times are milliseconds); nothing where no person looks on. */
export function progressLine(shown: boolean, verb: string) {
  let started = performance.now()
  let last = 0
  let total: number | undefined
  return {
    /** How many inodes there will be, about; counted before the walk begins. */
    expect(inodes: number): void {
      total = inodes
      started = performance.now()
    },
    update(counts: WalkCounts): void {
      const now = performance.now()
      if (!shown || now - started < FIRST_AFTER || now - last < EACH) return
      last = now
      // A terminal that does not know its size says 0.
      const columns = process.stderr.columns || NARROW
      writeAll(`\r${progressText({ ...counts, verb, total, elapsed: now - started }, columns - 1)}\x1b[K`, STDERR)
    },
    clear(): void {
      if (last > 0) writeAll('\r\x1b[K', STDERR)
      last = 0
    },
  }
}
