/** What should not have been seen. */
export class Odd extends Error {}

/** @throws {Odd} with both values, if they differ */
export function same(what: string, seen: unknown, wanted: unknown): void {
  const [now, then] = [JSON.stringify(seen), JSON.stringify(wanted)]
  if (now !== then) throw new Odd(`${what}: ${now}, not ${then}`)
}

/** Waits until it holds: what the kernel, a daemon or heal does beside takes its time, and longer under load. */
export async function settles(check: () => void | Promise<void>, seconds = 60): Promise<void> {
  const end = performance.now() + seconds * 1000
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > end) throw error
      await new Promise((done) => setTimeout(done, 50))
    }
  }
}
