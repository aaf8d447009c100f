import { execa } from 'execa'
import type { Daemons, Handle, Name } from '../host.ts'
import { resolveWithin } from '../waiting.ts'
import { CHILD_OPTIONS, waitUntilExit } from './child-process.ts'
import { isExecutable, SYSTEM_PATH } from './programs.ts'

/** Descriptor of the directory in the child. */
const PARENT_FD = 3

type LookupResult = Awaited<ReturnType<Daemons['lookUp']>>

interface PendingLookup {
  since: number
  answered: Promise<LookupResult>
  giveUp(): void
}

/** By key. A process that waits for a FUSE daemon may not end even if killed, so one per key is enough. */
const pendingLookups = new Map<string, PendingLookup>()

/** Keys whose last lookup timed out. The next lookup of such a key gets a shorter timeout. */
const lastUnresponsive = new Set<string>()
const RETRY_TIMEOUT_MS = 500

/**
 * Looks a name up in another process, because a thread that waits indefinitely would keep this process from ending. If
 * no process can be started, the daemon counts as responsive: detaching its mount could lose unwritten data.
 * @returns undefined on timeout
 */
export async function lookUp(parent: Handle, name: Name, milliseconds: number, key?: string): Promise<LookupResult> {
  const pending = key === undefined ? undefined : pendingLookups.get(key)
  const program = SYSTEM_PATH.map((directory) => `${directory}/stat`).find(isExecutable)
  if (program === undefined) return 'not asked'
  const lookup = pending ?? startLookup(program, parent, name)
  if (lookup === undefined) return 'found'
  const timeoutMs =
    key !== undefined && lastUnresponsive.has(key) ? Math.min(RETRY_TIMEOUT_MS, milliseconds) : milliseconds
  if (key !== undefined && pending === undefined) {
    pendingLookups.set(key, lookup)
    void lookup.answered.then(() => pendingLookups.delete(key))
  }
  const leftMs = Math.max(0, lookup.since + timeoutMs - performance.now())
  const result = await resolveWithin(leftMs, lookup.answered)
  if (result === undefined) lookup.giveUp()
  if (key !== undefined) lastUnresponsive[result === undefined ? 'add' : 'delete'](key)
  return result
}

function startLookup(program: string, parent: Handle, name: Name): PendingLookup | undefined {
  const path = `/proc/self/fd/${PARENT_FD}/${Buffer.from(name)}`
  // Calls both statfs(2) and statx(2), because a daemon may respond to only one. statfs(2) is never answered from the
  // dentry cache.
  const children = [['-f', path], [path]].flatMap((args) => {
    const { nodeChildProcess, pid } = execa(program, args, {
      ...CHILD_OPTIONS,
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
  const answered = Promise.all(children.map(waitUntilExit)).then((statuses): LookupResult => {
    if (statuses.some(({ signal }) => signal !== null)) return undefined
    return statuses.every(({ code }) => code === 0) ? 'found' : 'not found'
  })
  return { since: performance.now(), answered, giveUp }
}
