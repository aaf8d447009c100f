export interface BackOff {
  /** Upper bound of the first pause, in ms; it doubles with each failure in a row. */
  readonly firstMs: number
  /** Upper bound of every pause, in ms. */
  readonly mostMs: number
}

/** @param failures in a row, 1 or more. @returns ms */
export function computeLongestPauseMs({ firstMs, mostMs }: BackOff, failures: number): number {
  return Math.min(mostMs, firstMs * 2 ** (failures - 1))
}

/** @param random in [0, 1). @returns ms, between half the longest pause and all of it */
export function computePauseMs(backOff: BackOff, failures: number, random: number): number {
  const longest = computeLongestPauseMs(backOff, failures)
  // Many nodes' kubelets restart together; their plugins should not call together.
  return longest / 2 + (longest / 2) * random
}

const PAUSE = { firstMs: 2, mostMs: 50 }

/** Tries again without limit: whoever holds a lock is a running call, and the kernel frees it when that dies. */
export async function retryUntilDefined<T>(attempt: () => T | undefined): Promise<T> {
  for (let failures = 1; ; failures++) {
    const got = attempt()
    if (got !== undefined) return got
    await new Promise((resolve) => setTimeout(resolve, computeLongestPauseMs(PAUSE, failures)))
  }
}
