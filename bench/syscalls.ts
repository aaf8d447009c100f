/** Calls by name. */
export type Counts = Record<string, number>

// Node's threads meet or miss each other, and its heap grows or not: these differ from run to run on one volume too.
const RUNTIME = /^(futex|madvise|epoll_.*)$/

/** Reads the table of `strace -c`; without what the runtime does by chance. */
export function readCounts(table: string): Counts {
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/))
  const calls = rows
    .filter(([share = '']) => /^\d/.test(share))
    .map((row) => [row.at(-1) ?? '', Number(row[3])] as const)
  return Object.fromEntries(calls.filter(([name]) => name !== 'total' && !RUNTIME.test(name)))
}

/** Of several runs of one call, how often most of them made each: one more or one less came by chance. */
export function usual(runs: readonly Counts[]): Counts {
  const names = new Set(runs.flatMap((run) => Object.keys(run)))
  const counts = [...names].map((name) => [name, mostCommon(runs.map((run) => run[name] ?? 0))] as const)
  return Object.fromEntries(counts.filter(([, calls]) => calls > 0))
}

/** The smaller one where two are as common. */
function mostCommon(numbers: readonly number[]): number {
  const times = (number: number) => numbers.filter((other) => other === number).length
  return numbers.toSorted((a, b) => times(b) - times(a) || a - b)[0] ?? 0
}

export const total = (counts: Counts): number => Object.values(counts).reduce((sum, calls) => sum + calls, 0)

/** `name: a, b` for each call that is not made equally often. */
export function differences(a: Counts, b: Counts): string[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()
  return names.filter((name) => a[name] !== b[name]).map((name) => `${name}: ${a[name] ?? 0}, ${b[name] ?? 0}`)
}
