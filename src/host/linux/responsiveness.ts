import { execa } from 'execa'
import type { Daemons, Handle, Name } from '../host.ts'
import { CHILD_OPTIONS, resolveWithin, waitUntilExit } from './child-process.ts'
import { isExecutable, SYSTEM_PATH } from './programs.ts'

/** Where the program finds the directory that it inherits. */
const PARENT_FD = 3

type LookupResult = Awaited<ReturnType<Daemons['lookUp']>>

interface PendingLookup {
  since: number
  answered: Promise<LookupResult>
  giveUp(): void
}

/** By what they are about. A process that waits for a FUSE daemon may not even end when it is killed: one is enough. */
const pendingLookups = new Map<string, PendingLookup>()

/** What did not answer the last time is not waited for as long once more. Milliseconds. */
const lastUnresponsive = new Set<string>()
const RETRY_TIMEOUT_MS = 500

/**
 * Asks in another process: a thread that waits for an answer for ever would keep this one from ending. Where none can
 * be started nothing speaks against a daemon, and what it has not written yet is not to be lost.
 */
export async function answers(parent: Handle, name: Name, milliseconds: number, about?: string): Promise<boolean> {
  return (await lookUp(parent, name, milliseconds, about)) !== undefined
}

/** The same, with whether something was found. */
export async function lookUp(parent: Handle, name: Name, milliseconds: number, about?: string): Promise<LookupResult> {
  const known = about === undefined ? undefined : pendingLookups.get(about)
  const program = SYSTEM_PATH.map((directory) => `${directory}/stat`).find(isExecutable)
  if (program === undefined) return 'not asked'
  const question = known ?? startLookup(program, parent, name)
  if (question === undefined) return 'found'
  const patience =
    about !== undefined && lastUnresponsive.has(about) ? Math.min(RETRY_TIMEOUT_MS, milliseconds) : milliseconds
  if (about !== undefined && known === undefined) {
    pendingLookups.set(about, question)
    void question.answered.then(() => pendingLookups.delete(about))
  }
  const left = Math.max(0, question.since + patience - performance.now())
  const answer = await resolveWithin(left, question.answered)
  if (answer === undefined) question.giveUp()
  if (about !== undefined) lastUnresponsive[answer === undefined ? 'add' : 'delete'](about)
  return answer
}

function startLookup(program: string, parent: Handle, name: Name): PendingLookup | undefined {
  const path = `/proc/self/fd/${PARENT_FD}/${Buffer.from(name)}`
  // statfs(2) and statx(2): a daemon may answer one and not the other. From a cache comes nothing of the first.
  const children = [['-f', path], [path]].flatMap((args) => {
    const { nodeChildProcess, pid } = execa(program, args, {
      ...CHILD_OPTIONS,
      // Its types know descriptors up to 9 only.
      stdio: ['ignore', 'ignore', 'ignore', parent as number as 3],
    })
    return pid === undefined ? [] : nodeChildProcess
  })
  if (children.length === 0) return undefined
  const giveUp = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  for (const child of children) child.unref()
  const answered = Promise.all(children.map(waitUntilExit)).then((endings): LookupResult => {
    if (endings.some(({ signal }) => signal !== null)) return undefined
    return endings.every(({ code }) => code === 0) ? 'found' : 'not found'
  })
  return { since: performance.now(), answered, giveUp }
}
