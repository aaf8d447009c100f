import { Session } from 'node:inspector'

/**
 * Counts the work of a synchronous function without a clock: how often each function of modekeep's sources ran, how many
 * elements it iterated over, and how many characters and elements the built-in functions were given and returned.
 */
function countWork(run: () => void): number {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  let handled = 0
  const handle = (sizes: number) => {
    handled += sizes
  }
  const restore = BUILT_IN.map(([prototype, name]) => wrap(prototype, name, handle))
  try {
    run()
  } finally {
    for (const one of restore) one()
  }
  let blocks = 0
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error) throw error
    const own = coverage.result.filter(({ url }) => url.includes('/src/'))
    for (const { count } of own.flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))) blocks += count
  })
  session.disconnect()
  return blocks + handled
}

/** Linear work is 4, each prefix or each pair is 16. The engine may count a function that it has just compiled twice. */
export const LINEAR = 8

/** How many times the work of the larger input is that of one of a quarter of its size. */
export function measureGrowth(size: number, prepare: (size: number) => () => void): number {
  const [small, large] = [prepare(size / 4), prepare(size)]
  // What is made once, at the first call, does not count.
  prepare(40)()
  const work = countWork(small)
  return countWork(large) / work
}

type Prototype = Record<string, unknown>

const BUILT_IN: readonly (readonly [Prototype, string])[] = [
  ...['concat', 'includes', 'indexOf', 'join', 'slice'].map((name) => [Array.prototype, name] as const),
  ...['endsWith', 'includes', 'indexOf', 'lastIndexOf', 'replace', 'slice', 'split', 'startsWith'].map(
    (name) => [String.prototype, name] as const,
  ),
  ...['get', 'has', 'set'].map((name) => [Map.prototype, name] as const),
  ...['add', 'has'].map((name) => [Set.prototype, name] as const),
  ...[[], new Map(), new Set()].map((one) => [Object.getPrototypeOf(one[Symbol.iterator]()), 'next'] as const),
].map(([prototype, name]) => [prototype as unknown as Prototype, name] as const)

/** @returns what undoes it */
function wrap(prototype: Prototype, name: string, handle: (sizes: number) => void): () => void {
  const original = prototype[name] as (...given: unknown[]) => unknown
  prototype[name] = function (this: unknown, ...given: unknown[]) {
    const result = original.apply(this, given)
    // What begins with a text reads no more than that text; a part of a text is a reference to it.
    const isPart = typeof this === 'string' && (name === 'startsWith' || name === 'endsWith' || name === 'slice')
    handle(1 + (isPart ? 0 : sizeOf(this)) + sizeOf(given[0]) + (isPart ? 0 : sizeOf(result)))
    return result
  }
  return () => {
    prototype[name] = original
  }
}

/** Of a map or a set nothing: what it is asked for is found by its key. */
function sizeOf(value: unknown): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0
}
