import { writeAll } from './streams.ts'

const STDERR = 2
const FIRST_AFTER = 1000
const EACH = 200

/** One line on stderr that is written over, from a second on (all times are milliseconds); nothing where no person looks on. */
export function progressLine(shown: boolean, verb: string) {
  const started = performance.now()
  let last = 0
  return {
    update({ visited, changed }: { visited: number; changed: number }): void {
      const now = performance.now()
      if (!shown || now - started < FIRST_AFTER || now - last < EACH) return
      last = now
      writeAll(
        `\r${verb}: ${visited} looked at, ${changed} ${verb === 'plan' ? 'would change' : 'changed'}\x1b[K`,
        STDERR,
      )
    },
    clear(): void {
      if (last > 0) writeAll('\r\x1b[K', STDERR)
    },
  }
}
