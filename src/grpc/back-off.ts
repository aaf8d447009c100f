export interface BackOff {
  /** Upper bound of the first pause, in ms; it doubles with each failure in a row. */
  readonly firstMs: number
  /** Upper bound of every pause, in ms. */
  readonly mostMs: number
}

/** @param failures in a row, 1 or more. @param random in [0, 1). @returns ms, between half the bound and the bound */
export function pause({ firstMs, mostMs }: BackOff, failures: number, random: number): number {
  const bound = Math.min(mostMs, firstMs * 2 ** (failures - 1))
  // Many nodes' kubelets restart together; their plugins should not call together.
  return bound / 2 + (bound / 2) * random
}
