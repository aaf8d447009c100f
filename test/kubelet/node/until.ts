const EVERY_MS = 200
// The longest that anything here may take on a machine that is busy with other work.
const PATIENCE_S = 240

/** What no waiting helps with. */
export class Hopeless extends Error {}

/**
 * Waits for a condition.
 * @param test a throw counts as "not yet", its message is kept for the failure; but a Hopeless ends the wait
 * @throws {Error} what did not come true
 */
export async function until(what: string, test: () => boolean | Promise<boolean>, seconds = PATIENCE_S): Promise<void> {
  const end = performance.now() + seconds * 1000
  let reason = ''
  while (performance.now() < end) {
    try {
      if (await test()) return
      reason = ''
    } catch (error) {
      if (error instanceof Hopeless) throw error
      reason = `: ${error instanceof Error ? error.message : error}`
    }
    await new Promise((done) => setTimeout(done, EVERY_MS))
  }
  throw new Error(`not within ${seconds} s: ${what}${reason}`)
}
