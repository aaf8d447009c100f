import { setTimeout } from 'node:timers/promises'

/** Milliseconds between two looks: as watch(1). */
const POLL_INTERVAL_MS = 2000

/**
 * Looks again and again, until the process is ended or nobody reads any more.
 * @param show each time @returns false: nobody reads
 */
export async function pollStatus<Found>(look: () => Promise<Found>, show: (found: Found) => boolean): Promise<void> {
  while (show(await look())) await setTimeout(POLL_INTERVAL_MS)
}

/** What is shown on a stream that is no terminal: what differs from what was shown before. */
export function skipUnchanged<Found>(show: (found: Found) => boolean): (found: Found) => boolean {
  let before: string | undefined
  return (found) => {
    const now = JSON.stringify(found)
    if (now === before) return true
    before = now
    return show(found)
  }
}
