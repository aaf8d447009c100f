import { getErrno } from './system-error.ts'

export interface BackOffLimits {
  /** Upper bound of the first pause, in ms. Each further failure in a row doubles it. */
  readonly firstMs: number
  /** Upper bound of every pause, in ms. */
  readonly mostMs: number
}

/** @param failures in a row, at least 1 @returns ms */
export function computeLongestPauseMs({ firstMs, mostMs }: BackOffLimits, failures: number): number {
  return Math.min(mostMs, firstMs * 2 ** (failures - 1))
}

/** @param random in [0, 1) @returns ms, between half of the longest pause and the longest pause */
export function computeBackOffPauseMs(backOff: BackOffLimits, failures: number, random: number): number {
  const longest = computeLongestPauseMs(backOff, failures)
  // Kubelets of many nodes restart together. The random part keeps their plugins from calling at the same time.
  return longest / 2 + (longest / 2) * random
}

const LOCK_RETRY_PAUSE_LIMITS = { firstMs: 2, mostMs: 50 }

/** Retries without limit: a lock belongs to a running call, and the kernel releases it if that call crashes. */
export async function retryUntilDefined<T>(attempt: () => T | undefined): Promise<T> {
  for (let failures = 1; ; failures++) {
    const result = attempt()
    if (result !== undefined) return result
    await new Promise((resolve) => setTimeout(resolve, computeLongestPauseMs(LOCK_RETRY_PAUSE_LIMITS, failures)))
  }
}

/** Limits the number of concurrent callers. Waiting callers get their turn in order of arrival. */
export class FairSemaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** Waits for a turn. Disposing of the result, also repeatedly, ends the turn. */
  async take(): Promise<Disposable> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((next) => this.#waiting.push(next))
    let isOver = false
    return {
      [Symbol.dispose]: () => {
        if (isOver) return
        isOver = true
        const next = this.#waiting.shift()
        if (next) next()
        else this.#free++
      },
    }
  }
}

/** More than the concurrent calls that remove and create one directory. */
const MAX_REMOVAL_RETRIES = 100

/**
 * Retries on ENOENT, because another call may remove an empty directory before something is created in it. `operation` must
 * create the directory again each time.
 * @throws the errors of `operation`, and ENOENT after the last attempt
 */
export function retryWhileRemoved<T>(operation: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return operation()
    } catch (error) {
      if (getErrno(error) !== 'ENOENT' || attempt === MAX_REMOVAL_RETRIES) throw error
    }
  }
}

const MAX_TIMER_MS = 2 ** 31 - 1

/** Resolves to undefined on timeout. */
export function resolveWithinTimeout<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((done) => {
    const timer = setTimeout(() => done(undefined), Math.min(milliseconds, MAX_TIMER_MS))
    void promise.then((value) => {
      clearTimeout(timer)
      done(value)
    })
  })
}

const RESPONSE_CHECK_INTERVAL_MS = 250

/** Measures for how long a worker has reported nothing. Counts its own ticks, because this process may be stopped too. */
export class ResponseTimer {
  readonly #defaultMs: number
  #patienceMs: number
  #elapsedMs = 0
  #timer: NodeJS.Timeout

  /** @param onTimeout is called once, when the worker has reported nothing for too long */
  constructor(patienceMs: number, onTimeout: (elapsedMs: number) => void) {
    this.#defaultMs = patienceMs
    this.#patienceMs = patienceMs
    this.#timer = setInterval(() => {
      this.#elapsedMs += RESPONSE_CHECK_INTERVAL_MS
      if (this.#elapsedMs < this.#patienceMs) return
      this.stop()
      onTimeout(this.#elapsedMs)
    }, RESPONSE_CHECK_INTERVAL_MS).unref()
  }

  /** @param patienceMs new limit; null: the default; undefined: unchanged */
  reset(patienceMs?: number | null): void {
    this.#elapsedMs = 0
    if (patienceMs !== undefined) this.#patienceMs = patienceMs ?? this.#defaultMs
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  [Symbol.dispose](): void {
    this.stop()
  }
}

/** Optimized code of shorter work costs more time than it saves. */
const OPTIMIZE_AFTER_MS = 50

/**
 * Has V8 optimize no code for a while, in a process that ends with its work.
 * @param pulse is called regularly by the work
 * @returns the function to call instead
 */
export function postponeOptimization(pulse: (() => void) | undefined): () => void {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  for (const compiler of ['opt', 'maglev']) setFlagsFromString(`--no-${compiler}`)
  const until = performance.now() + OPTIMIZE_AFTER_MS
  let isOptimizing = false
  return () => {
    pulse?.()
    if (isOptimizing || performance.now() < until) return
    isOptimizing = true
    for (const compiler of ['opt', 'maglev']) setFlagsFromString(`--${compiler}`)
  }
}
