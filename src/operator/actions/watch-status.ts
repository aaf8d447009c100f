import { setTimeout } from 'node:timers/promises'

/** The interval of watch(1). */
const POLL_INTERVAL_MS = 2000

/**
 * Reads and shows the status repeatedly, until the process ends or the reader closes the stream.
 * @param show returns false if the reader has closed the stream
 */
export async function pollStatus<Status>(
  read: () => Promise<Status>,
  show: (status: Status) => boolean,
): Promise<void> {
  while (show(await read())) await setTimeout(POLL_INTERVAL_MS)
}

/** Shows only a status that differs from the last one, for a stream that is no terminal. */
export function skipUnchanged<Status>(show: (status: Status) => boolean): (status: Status) => boolean {
  let before: string | undefined
  return (status) => {
    const now = JSON.stringify(status)
    if (now === before) return true
    before = now
    return show(status)
  }
}
