/** One at a time; of those that come meanwhile the newest alone. */
export function newestOf<What>(work: (what: What) => Promise<void>): (what: What) => Promise<void> {
  let isAtWork = false
  let next: What | undefined
  return async (what) => {
    next = what
    if (isAtWork) return
    isAtWork = true
    try {
      for (let now: What | undefined = next; now !== undefined; now = next) {
        next = undefined
        await work(now)
      }
    } finally {
      isAtWork = false
    }
  }
}
