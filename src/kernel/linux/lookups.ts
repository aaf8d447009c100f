import { execa } from 'execa'
import type { DaemonOperations, EntryName, Handle } from '../host.ts'
import { resolveWithinTimeout } from '../waiting.ts'
import { CHILD_PROCESS_OPTIONS, waitForProcessExit } from './child-process.ts'
import { isExecutableFile, SYSTEM_PROGRAM_DIRECTORIES } from './programs.ts'

/** Descriptor of the directory in the child. */
const PARENT_DIRECTORY_FD = 3

type LookupResult = Awaited<ReturnType<DaemonOperations['lookUp']>>

interface PendingLookup {
  since: number
  answered: Promise<LookupResult>
  giveUp(): void
}

/** By key. A process that waits for a FUSE daemon may not end even if killed, so one per key is enough. */
const pendingLookups = new Map<string, PendingLookup>()

/** Keys whose last lookup timed out. The next lookup of such a key gets a shorter timeout. */
const unresponsiveLookupKeys = new Set<string>()
const REPEATED_LOOKUP_TIMEOUT_MS = 500

/**
 * Looks a name up in another process, because a thread that waits indefinitely would keep this process from ending. If
 * no process can be started, the daemon counts as responsive: detaching its mount could lose unwritten data.
 * @returns undefined on timeout
 */
export async function lookUpName(
  parent: Handle,
  name: EntryName,
  milliseconds: number,
  key?: string,
): Promise<LookupResult> {
  const pending = key === undefined ? undefined : pendingLookups.get(key)
  const program = SYSTEM_PROGRAM_DIRECTORIES.map((directory) => `${directory}/stat`).find(isExecutableFile)
  if (program === undefined) return 'not asked'
  const lookup = pending ?? startLookup(program, parent, name)
  if (lookup === undefined) return 'found'
  const timeoutMs =
    key !== undefined && unresponsiveLookupKeys.has(key)
      ? Math.min(REPEATED_LOOKUP_TIMEOUT_MS, milliseconds)
      : milliseconds
  if (key !== undefined && pending === undefined) {
    pendingLookups.set(key, lookup)
    void lookup.answered.then(() => pendingLookups.delete(key))
  }
  const leftMs = Math.max(0, lookup.since + timeoutMs - performance.now())
  const result = await resolveWithinTimeout(leftMs, lookup.answered)
  if (result === undefined) lookup.giveUp()
  if (key !== undefined) unresponsiveLookupKeys[result === undefined ? 'add' : 'delete'](key)
  return result
}

function startLookup(program: string, parent: Handle, name: EntryName): PendingLookup | undefined {
  const path = `/proc/self/fd/${PARENT_DIRECTORY_FD}/${Buffer.from(name)}`
  // Calls both statfs(2) and statx(2), because a daemon may respond to only one. statfs(2) is never answered from the
  // dentry cache.
  const children = [['-f', path], [path]].flatMap((args) => {
    const { nodeChildProcess, pid } = execa(program, args, {
      ...CHILD_PROCESS_OPTIONS,
      // execa's types only accept descriptors up to 9.
      stdio: ['ignore', 'ignore', 'ignore', parent as number as 3],
    })
    return pid === undefined ? [] : nodeChildProcess
  })
  if (children.length === 0) return undefined
  const giveUp = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  for (const child of children) child.unref()
  const answered = Promise.all(children.map(waitForProcessExit)).then((statuses): LookupResult => {
    if (statuses.some(({ signal }) => signal !== null)) return undefined
    return statuses.every(({ code }) => code === 0) ? 'found' : 'not found'
  })
  return { since: performance.now(), answered, giveUp }
}
