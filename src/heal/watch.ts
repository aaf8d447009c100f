import { computeLongestPauseMs } from '../host/back-off.ts'

/**
 * Pause between a heal's end and the next one's start, so that one heal handles a burst of changes. It grows with
 * consecutive failures, because the changes of a failing heal would wake the loop at once.
 */
const HEAL_PAUSE = { firstMs: 200, mostMs: 30_000 }
/** A heal rests this many times the processor time it used, so that a node whose mounts always change is not slowed. */
const REST_FACTOR = 9
const MAX_REST_MS = 30_000
/** Changes on a server cause no event. */
const BLIND_INTERVAL_MS = 30_000
/** Time for a running heal to complete when the loop ends. The next heal finds any remaining work. */
const END_TIMEOUT_MS = 500
/** An event may have been missed, or a watch may have been impossible. */
const SAFETY_INTERVAL_MS = 5 * 60_000

/** One pass over all mounts. */
export type Heal = () => Promise<{
  /** Directories in which the next change matters. */
  watched: readonly string[]
  /** Processes whose end matters. */
  daemons: readonly number[]
  /** A mount must be checked again, though no event may report a change. */
  isUnsettled: boolean
  /** Some directories cannot be watched, or some states are unknown now. */
  isBlind: boolean
}>

/** Reports changes to the loop. */
interface ChangeSource {
  /** Called once, before the first heal. */
  listen(changed: () => void): void
  /** Watches these directories from now on, and no others. @returns whether one of them is new */
  follow(directories: readonly string[]): boolean
  /** Watches the end of these processes from now on. Earlier ones stay watched, because they may be just ending. */
  attend(daemons: readonly number[]): void
}

export interface WatchOptions {
  changes: ChangeSource
  /** Ends the loop, and a running heal that does not complete soon. */
  signal: AbortSignal
  /** Returns this process's processor time in milliseconds, which does not grow while it waits for a server. */
  spent(): number
  /** Reports a failed heal; the loop continues. */
  failed(error: unknown): void
}

/**
 * Heals at once, after each change, and again while a mount is unsettled. Heals never overlap, and one always begins after
 * the last change.
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

  /** Waits `time` milliseconds, or until a wake-up at which `isOver` returns true. */
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
      // A directory may have changed after the heal checked it and before it was watched.
      if (changes.follow(watched)) changed = true
      failures = 0
      unsettled = isUnsettled ? unsettled + 1 : 0
      if (isUnsettled) patience = computeLongestPauseMs(HEAL_PAUSE, unsettled + 1)
      else if (isBlind) patience = BLIND_INTERVAL_MS
    } catch (error) {
      failed(error)
      failures++
      patience = computeLongestPauseMs(HEAL_PAUSE, failures + 1)
    }
    const rest = Math.min(MAX_REST_MS, REST_FACTOR * (spent() - before))
    await sleep(Math.max(computeLongestPauseMs(HEAL_PAUSE, failures + 1), rest), () => signal.aborted)
    await sleep(patience, () => changed || signal.aborted)
  }
}
