/** Calls by name. */
export type Counts = Record<string, number>

// Node's threads meet or miss each other, and its heap grows or not: these differ from run to run on one volume too. Where
// threads meet for the first time, V8 measures the processor.
const RUNTIME = /^(futex|madvise|mmap|munmap|epoll_.*|clock_nanosleep|sched_getparam|sched_getscheduler)$/
const OF_PROCESSORS = '/sys/devices/system/cpu/'

/** Reads the table of `strace -c`; without what the runtime does by chance. */
export function readCounts(table: string): Counts {
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/))
  const calls = rows
    .filter(([share = '']) => /^\d/.test(share))
    .map((row) => [row.at(-1) ?? '', Number(row[3])] as const)
  return Object.fromEntries(calls.filter(([name]) => name !== 'total' && !RUNTIME.test(name)))
}

/** Counts the calls of one thread's trace (`strace -ff -y`), without the same ones. */
export function countCalls(trace: string): Counts {
  const counts: Counts = {}
  for (const line of trace.split('\n')) {
    const name = /^\w+(?=\()/.exec(line)?.[0]
    if (name === undefined || RUNTIME.test(name) || line.includes(OF_PROCESSORS)) continue
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
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
