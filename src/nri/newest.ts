/**
 * One at a time; of those that come meanwhile the newest alone.
 * @returns a function whose promise settles once all that came is done
 */
export function newestOf<What>(work: (what: What) => Promise<void>): (what: What) => Promise<void> {
  let isAtWork = false
  let next: What | undefined
  let done: Promise<void> = Promise.resolve()
  const workOff = async () => {
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
  return (what) => {
    next = what
    if (!isAtWork) done = workOff()
    return done
  }
}
