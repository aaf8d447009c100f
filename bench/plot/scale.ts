/** Maps values onto pixels by their logarithm. */
export interface LogScale {
  (value: number): number
  /** The powers of ten within its ends. */
  ticks: number[]
}

/**
 * A scale from whole decades around `values` onto `from`..`to`; all values are greater than 0.
 */
export function logScale(values: readonly number[], from: number, to: number): LogScale {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))
  const at = (value: number) => from + ((Math.log10(value) - low) / (high - low)) * (to - from)
  return Object.assign(at, { ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)) })
}
