/**
 * Runs one call at a time. Of the calls that come while one runs, only the newest is carried out.
 * @returns a function whose promise settles once no call runs or waits
 */
export function coalesceCalls<Argument>(
  run: (argument: Argument) => Promise<void>,
): (argument: Argument) => Promise<void> {
  let isRunning = false
  let next: Argument | undefined
  let done: Promise<void> = Promise.resolve()
  const runAll = async () => {
    isRunning = true
    try {
      for (let current: Argument | undefined = next; current !== undefined; current = next) {
        next = undefined
        await run(current)
      }
    } finally {
      isRunning = false
    }
  }
  return (argument) => {
    next = argument
    if (!isRunning) done = runAll()
    return done
  }
}
