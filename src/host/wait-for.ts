const FIRST_PAUSE = 2
const LONGEST_PAUSE = 50

/** Tries again and again, without limit: whoever holds a lock is a running call, and the kernel frees it when that dies. */
export async function waitFor<T>(attempt: () => T | undefined): Promise<T> {
  // Milliseconds.
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    const got = attempt()
    if (got !== undefined) return got
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}
