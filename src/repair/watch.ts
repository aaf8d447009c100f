import { once } from 'node:events'
import { dirname } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { getSourcePath } from '../config/source.ts'
import { getErrno } from '../kernel/host.ts'
import { createWatchStop, DirectoryWatches, ProcessWatch } from '../kernel/linux/watches.ts'
import { findPodDirectory } from '../kernel/mount-table/kubelet-volume.ts'
import { computeLongestPauseMs } from '../kernel/waiting.ts'
import { listReadableMountRecords } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'

/**
 * Pause between a heal's end and the next one's start, so that one heal handles a burst of changes. It grows with
 * consecutive failures, because the changes of a failing heal would wake the loop at once.
 */
const PAUSE_BETWEEN_HEALS = { firstMs: 200, mostMs: 30_000 }
/** A heal rests this many times the processor time it used, so that a node whose mounts always change is not slowed. */
const HEAL_REST_FACTOR = 9
const MAX_HEAL_REST_MS = 30_000
/** Changes on a server cause no event. */
const UNWATCHED_HEAL_INTERVAL_MS = 30_000
/** Time for a running heal to complete when the loop ends. The next heal finds any remaining work. */
const HEAL_END_TIMEOUT_MS = 500
/** An event may have been missed, or a watch may have been impossible. */
const SAFETY_HEAL_INTERVAL_MS = 5 * 60_000

/** One pass over all mounts. */
export type RunHeal = () => Promise<{
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
interface MountChangeSource {
  /** Called once, before the first heal. */
  listen(changed: () => void): void
  /** Watches these directories from now on, and no others. @returns whether one of them is new */
  follow(directories: readonly string[]): boolean
  /** Watches the end of these processes from now on. Earlier ones stay watched, because they may be just ending. */
  attend(daemons: readonly number[]): void
}

export interface HealWatchOptions {
  changes: MountChangeSource
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
export async function watchAndHeal(heal: RunHeal, { changes, signal, spent, failed }: HealWatchOptions): Promise<void> {
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
        setTimeout(resolve, HEAL_END_TIMEOUT_MS, 'ended').unref()
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
    let patience = SAFETY_HEAL_INTERVAL_MS
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
      if (isUnsettled) patience = computeLongestPauseMs(PAUSE_BETWEEN_HEALS, unsettled + 1)
      else if (isBlind) patience = UNWATCHED_HEAL_INTERVAL_MS
    } catch (error) {
      failed(error)
      failures++
      patience = computeLongestPauseMs(PAUSE_BETWEEN_HEALS, failures + 1)
    }
    const rest = Math.min(MAX_HEAL_REST_MS, HEAL_REST_FACTOR * (spent() - before))
    await sleep(Math.max(computeLongestPauseMs(PAUSE_BETWEEN_HEALS, failures + 1), rest), () => signal.aborted)
    await sleep(patience, () => changed || signal.aborted)
  }
}

/** The mount table is watched in a thread, because poll(2) blocks it. @param stop handle that ends the thread */
type StartMountWatch = (stop: number) => Worker

const WATCH_FALLBACK_NOTE = 'until then some changes are only found every five minutes'

/** Remedies for the limits of inotify(7), by errno. */
const INOTIFY_REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'raise the sysctl fs.inotify.max_user_watches; ',
  EMFILE: 'raise the sysctl fs.inotify.max_user_instances; ',
}

/** Heals after every change on this node, until at most a second after `signal` aborts. */
export async function watchNodeMounts(
  heal: RunHeal,
  {
    warn,
    failed,
    signal,
    startMountWatch,
  }: Pick<HealWatchOptions, 'failed' | 'signal'> & { warn(message: string): void; startMountWatch: StartMountWatch },
): Promise<void> {
  let changed = () => {}
  const directories = new DirectoryWatches(
    () => changed(),
    (error) => {
      const remedy = INOTIFY_REMEDIES[getErrno(error) ?? ''] ?? ''
      warn(`cannot watch directories (${error.message}): ${remedy}${WATCH_FALLBACK_NOTE}`)
    },
    false,
  )
  const daemons = new ProcessWatch(() => changed())
  const endThread = await startMountTableWatch(
    startMountWatch,
    () => changed(),
    (error) => warn(`cannot watch the mount table (${error.message}): restart it; ${WATCH_FALLBACK_NOTE}`),
  )
  try {
    const listen = (callback: () => void) => {
      changed = callback
    }
    await watchAndHeal(heal, {
      changes: { listen, follow: (paths) => directories.follow(paths), attend: (pids) => daemons.follow(pids) },
      signal,
      spent: readProcessorTimeMs,
      failed,
    })
  } finally {
    endThread()
    directories.close()
    daemons.close()
  }
}

/** Watches the mount table. Resolves once no change can be missed. @returns a function that ends the thread */
async function startMountTableWatch(
  start: StartMountWatch,
  changed: () => void,
  failed: (error: Error) => void,
): Promise<() => void> {
  const stop = createWatchStop()
  const thread = start(stop.handle)
  // A process waits for its threads at exit, and this thread is blocked in a system call.
  process.once('exit', stop.now)
  thread.once('error', failed)
  thread.on('message', changed)
  await once(thread, 'message').catch(() => {})
  return () => {
    process.off('exit', stop.now)
    stop.now()
  }
}

function readProcessorTimeMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/**
 * A pod's author chooses the depth of a subPath, and the kernel limits the number of watched directories per user. The next
 * periodic heal finds a link that is replaced above these levels.
 */
const MAX_WATCHED_PARENT_LEVELS = 32

/**
 * Lists the directories whose changes may make a mount stale: of pods with mapped groups, the sources, and their parents.
 * With a subPath these include all directories between the source and its target, where a link may be replaced.
 */
export function listWatchedSourceDirectories(session: Session): string[] {
  const directories = new Set<string>()
  for (const record of listReadableMountRecords(session)) {
    // Kubelet writes there, after the call that mapped, whether the pod has a user namespace.
    const pod = record.given.by === 'idmap' ? findPodDirectory(record.directory) : undefined
    if (pod !== undefined) directories.add(pod)
    const source = getSourcePath(record.request.source)
    if (source === undefined) continue
    for (const directory of [source, dirname(source)]) directories.add(directory)
    let at = dirname(record.source ?? source)
    for (let level = 0; level < MAX_WATCHED_PARENT_LEVELS && at.startsWith(`${source}/`); level++) {
      directories.add(at)
      at = dirname(at)
    }
  }
  return [...directories].sort()
}
