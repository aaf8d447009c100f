import { longestPause } from './back-off.ts'

const PAUSE = { firstMs: 2, mostMs: 50 }

/** Tries again and again, without limit: whoever holds a lock is a running call, and the kernel frees it when that dies. */
export async function waitFor<T>(attempt: () => T | undefined): Promise<T> {
  for (let failures = 1; ; failures++) {
    const got = attempt()
    if (got !== undefined) return got
    await new Promise((resolve) => setTimeout(resolve, longestPause(PAUSE, failures)))
  }
}
