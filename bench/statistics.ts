/** The middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('no values to take a median of')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const at = (index: number) => sorted[index] ?? 0
  return sorted.length % 2 ? at(Math.floor(middle)) : (at(middle - 1) + at(middle)) / 2
}

/** Every second round runs backwards, so that whoever comes first is not always the same. */
export function inOrder<T>(items: readonly T[], round: number): T[] {
  return round % 2 ? [...items].reverse() : [...items]
}
