import type * as NodeFs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { openToRead } from '../../host/read-file.ts'
import { isRefusedPath } from '../../host/write-file.ts'
import { logEntry } from '../../log/log-entry.ts'
import { generations } from '../../log/log-file.ts'
import { logReader } from '../../log/log-reader.ts'
import { messageOf, Refusal } from '../../refusal/refusal.ts'

/** @property last undefined: all lines @property age in milliseconds, of the oldest line; undefined: any */
export interface LogsCommand {
  verb: 'logs'
  isFollowing: boolean
  last: number | undefined
  pod: string | undefined
  age?: number | undefined
  /** Only calls that failed. */
  isFailed?: boolean
}

const POLL_INTERVAL_MS = 250

/**
 * Reads the node's log. With `isFollowing` it stays until the process is ended, or nobody reads any more.
 * @param show is given each line as it was written; false: nobody reads
 * @throws {Refusal} where there is no log, and it is not waited for
 */
export async function readLog(
  fs: typeof NodeFs,
  { isFollowing, last, pod, age, isFailed }: LogsCommand,
  file: string,
  show: (raw: string) => boolean,
): Promise<void> {
  if (!isFollowing && !generations(file).some((name) => fs.existsSync(name))) {
    throw new Refusal(`there is no log ${file} yet: kubelet has made no call that is logged`)
  }
  refuseForeignLog(fs, file)
  const isAbout = createPodFilter(pod)
  const reader = logReader(fs, file, 'show')
  const isYoung = createAgeFilter(age)
  // Each line is asked whether it tells of the pod: it may tell of more.
  const isWanted = (raw: string) => isAbout(raw) && isYoung(raw) && (!isFailed || hasFailed(raw))
  const readNewLines = () => reader.lines().filter(isWanted)
  let isRead = takeLast(readNewLines(), last).every(show)
  while (isRead && isFollowing) {
    await setTimeout(POLL_INTERVAL_MS)
    isRead = readNewLines().every(show)
  }
}

/** @throws {Refusal} where something else is in the log's place, which modekeep neither reads nor writes */
function refuseForeignLog(fs: typeof NodeFs, file: string): void {
  try {
    openToRead(fs, file)[Symbol.dispose]()
  } catch (error) {
    if (!isRefusedPath(error)) return
    throw new Refusal(`${messageOf(error)}: this is not modekeep's log: make it a regular file of root's, or remove it`)
  }
}

/** The last so many, without holding more of them. */
function takeLast(lines: IteratorObject<string>, last: number | undefined): Pick<IteratorObject<string>, 'every'> {
  if (last === undefined) return lines
  const kept: string[] = []
  for (const line of lines) {
    kept.push(line)
    if (kept.length > 2 * last + 1000) kept.splice(0, kept.length - last)
  }
  return last === 0 ? [].values() : kept.slice(-last).values()
}

/** Lines that say when they were written, and not before that. */
function createAgeFilter(age: number | undefined): (raw: string) => boolean {
  if (age === undefined) return () => true
  const from = Date.now() - age
  return (raw) => Date.parse(String(logEntry(raw)?.time)) >= from
}

/** What a call ends with that failed, or was refused. */
function hasFailed(raw: string): boolean {
  return logEntry(raw)?.outcome === 'Failure'
}

/** Lines about one pod: by its UID, which is in its paths, or by NAMESPACE/NAME, by which its UID is learned. */
export function createPodFilter(pod: string | undefined): (raw: string) => boolean {
  if (pod === undefined) return () => true
  if (!pod.includes('/')) return (raw) => raw.includes(`/pods/${pod}/`)
  const places = new Set<string>()
  return (raw) => {
    if (raw.includes(JSON.stringify(pod))) {
      const entry = logEntry(raw)
      const place = entry?.pod === pod ? /^.*\/pods\/[^/]+\//.exec(String(entry.directory))?.[0] : undefined
      if (place) places.add(place)
      return true
    }
    return [...places].some((place) => raw.includes(place))
  }
}
