import { TestRunner } from 'vitest'
import { Unavailable } from '../../scripts/fetch/unavailable.ts'

const WAY_OUT = 'run the test with network on a machine whose apt has Debian among its sources'

/** The same function; where what it fetches cannot be had, the running test is skipped with the reason and the way out. */
export function orSkip<Args extends unknown[], Result>(get: (...args: Args) => Result): (...args: Args) => Result {
  return (...args) => {
    try {
      return get(...args)
    } catch (error) {
      if (error instanceof Unavailable) TestRunner.getCurrentTest()?.context.skip(`${error.message}: ${WAY_OUT}`)
      throw error
    }
  }
}

/** Why `get` cannot have what it fetches, with the way out; '' where it can. */
export function whyUnavailable(get: () => unknown): string {
  try {
    get()
    return ''
  } catch (error) {
    if (error instanceof Unavailable) return `skipped: ${error.message}: ${WAY_OUT}`
    throw error
  }
}
