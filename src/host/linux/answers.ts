import { execa } from 'execa'
import type { Handle, Name } from '../host.ts'
import { CHILD_OPTIONS, endingOf, within } from './child.ts'
import { isExecutable, SYSTEM_PATH } from './programs.ts'

/** Where the program finds the directory that it inherits. */
const PARENT = 3

interface Question {
  since: number
  ended: Promise<unknown>
}

/** By what they are about. A process that waits for a FUSE daemon may not even end when it is killed: one is enough. */
const open = new Map<string, Question>()

/**
 * Asks in another process: a thread that waits for an answer for ever would keep this one from ending. Where none can
 * be started nothing speaks against a daemon, and what it has not written yet is not to be lost.
 */
export async function answers(parent: Handle, name: Name, milliseconds: number, about?: string): Promise<boolean> {
  const known = about === undefined ? undefined : open.get(about)
  const question = known ?? ask(parent, name)
  if (question === undefined) return true
  if (about !== undefined && known === undefined) {
    open.set(about, question)
    void question.ended.then(() => open.delete(about))
  }
  const left = Math.max(0, question.since + milliseconds - performance.now())
  return (
    (await within(
      left,
      question.ended.then(() => 'answered'),
    )) !== undefined
  )
}

function ask(parent: Handle, name: Name): Question | undefined {
  const program = SYSTEM_PATH.map((directory) => `${directory}/stat`).find(isExecutable)
  if (program === undefined) return undefined
  const path = `/proc/self/fd/${PARENT}/${Buffer.from(name)}`
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
  const end = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  process.once('exit', end)
  const ended = Promise.all(children.map(endingOf))
  void ended.then(() => process.off('exit', end))
  for (const child of children) child.unref()
  return { since: performance.now(), ended }
}
