import { TestRunner } from 'vitest'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'

const WAY_OUT = 'run the test with network on a machine whose apt has Debian among its sources'

/** Wraps a function that downloads: if the download is unavailable, the running test is skipped with reason and remedy. */
export function skipIfUnavailable<Args extends unknown[], Result>(
  get: (...args: Args) => Result,
): (...args: Args) => Result {
  return (...args) => {
    try {
      return get(...args)
    } catch (error) {
      if (error instanceof UnavailableError) TestRunner.getCurrentTest()?.context.skip(`${error.message}: ${WAY_OUT}`)
      throw error
    }
  }
}

/** Returns why `get` cannot download, with the remedy, or ''. */
export function explainUnavailable(get: () => unknown): string {
  try {
    get()
    return ''
  } catch (error) {
    if (error instanceof UnavailableError) return `skipped: ${error.message}: ${WAY_OUT}`
    throw error
  }
}
