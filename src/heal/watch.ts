import { longestPause } from '../host/back-off.ts'

/**
 * Between the end of a heal and the next one's start: what comes in a burst is looked at once. After failures in a row
 * it is longer: what a failing heal does to mounts would wake it at once.
 */
const HEAL_PAUSE = { firstMs: 200, mostMs: 30_000 }
/** A node whose mounts always change still has the processor for others: a heal rests this many times what it took of it. */
const REST_FACTOR = 9
const MAX_REST_MS = 30_000
/** What a server tells of says nothing when it changes. */
const BLIND_INTERVAL_MS = 30_000
/** Of a heal that is under way when the loop is to end: whatever it leaves, the next one finds. */
const END_TIMEOUT_MS = 500
/** An event may have been missed, or could not be asked for. */
const SAFETY_INTERVAL_MS = 5 * 60_000

/** One look at all that is to be healed. */
export type Heal = () => Promise<{
  /** Directories in which the next change matters. */
  watched: readonly string[]
  /** Processes whose end matters. */
  daemons: readonly number[]
  /** Something is to be looked at again, though nothing may tell that it has changed. */
  isUnsettled: boolean
  /** Some of what matters cannot be watched, or cannot be told now. */
  isBlind: boolean
}>

/** Where the loop hears of changes. */
export interface ChangeSource {
  /** Called once, before the first heal. */
  listen(changed: () => void): void
  /** Changes in these directories count from now on, and no longer those in others. True: one of them is new. */
  follow(directories: readonly string[]): boolean
  /** The end of these processes counts from now on, also that of one no longer named: it may be just ending. */
  attend(daemons: readonly number[]): void
}

export interface WatchOptions {
  changes: ChangeSource
  /** Ends the loop, with a heal that is under way if that is not done soon. */
  signal: AbortSignal
  /** How long this process has had a processor, in milliseconds: who waits for a server takes none. */
  spent(): number
  /** A heal has failed; the loop goes on. */
  failed(error: unknown): void
}

/**
 * Heals at once, then after each change, and again while something is left undone: never two heals at a time, and
 * always one that begins after the last change.
 */
export async function watch(heal: Heal, { changes, signal, spent, failed }: WatchOptions): Promise<void> {
  let changed = false
  let wake = () => {}
  changes.listen(() => {
    changed = true
    wake()
  })
  const ended = new Promise<'ended'>((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        wake()
        setTimeout(resolve, END_TIMEOUT_MS, 'ended').unref()
      },
      { once: true },
    )
  })

  /** Until so many milliseconds have passed, or it is over before. */
  const sleep = (time: number, isOver: () => boolean) =>
    new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        wake = () => {}
        resolve()
      }
      const timer = setTimeout(end, time)
      wake = () => {
        if (isOver()) end()
      }
      wake()
    })

  let failures = 0
  let unsettled = 0
  while (!signal.aborted) {
    changed = false
    let patience = SAFETY_INTERVAL_MS
    const before = spent()
    try {
      const found = await Promise.race([heal(), ended])
      if (found === 'ended') return
      const { watched, daemons, isUnsettled, isBlind } = found
      changes.attend(daemons)
      // A directory may have changed after the heal looked there and before it was watched.
      if (changes.follow(watched)) changed = true
      failures = 0
      unsettled = isUnsettled ? unsettled + 1 : 0
      if (isUnsettled) patience = longestPause(HEAL_PAUSE, unsettled + 1)
      else if (isBlind) patience = BLIND_INTERVAL_MS
    } catch (error) {
      failed(error)
      failures++
      patience = longestPause(HEAL_PAUSE, failures + 1)
    }
    const rest = Math.min(MAX_REST_MS, REST_FACTOR * (spent() - before))
    await sleep(Math.max(longestPause(HEAL_PAUSE, failures + 1), rest), () => signal.aborted)
    await sleep(patience, () => changed || signal.aborted)
  }
}
