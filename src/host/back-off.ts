export interface BackOff {
  /** Upper bound of the first pause, in ms. Each further failure in a row doubles it. */
  readonly firstMs: number
  /** Upper bound of every pause, in ms. */
  readonly mostMs: number
}

/** @param failures in a row, at least 1 @returns ms */
export function computeLongestPauseMs({ firstMs, mostMs }: BackOff, failures: number): number {
  return Math.min(mostMs, firstMs * 2 ** (failures - 1))
}

/** @param random in [0, 1) @returns ms, between half of the longest pause and the longest pause */
export function computePauseMs(backOff: BackOff, failures: number, random: number): number {
  const longest = computeLongestPauseMs(backOff, failures)
  // Kubelets of many nodes restart together. The random part keeps their plugins from calling at the same time.
  return longest / 2 + (longest / 2) * random
}

const PAUSE = { firstMs: 2, mostMs: 50 }

/** Retries without limit: a lock belongs to a running call, and the kernel releases it if that call crashes. */
export async function retryUntilDefined<T>(attempt: () => T | undefined): Promise<T> {
  for (let failures = 1; ; failures++) {
    const result = attempt()
    if (result !== undefined) return result
    await new Promise((resolve) => setTimeout(resolve, computeLongestPauseMs(PAUSE, failures)))
  }
}
