import { basename, dirname } from 'node:path'
import { execa } from 'execa'
import { Refusal } from '../../errors/refusal.ts'
import { retryUntilDefined } from '../back-off.ts'
import { tolerateSystemErrors } from '../file-error.ts'
import { ISOLATED_PROCESS, type IsolatedTask, type IsolatedTaskEnd } from '../isolated-process.ts'
import { nodeFs } from '../node-fs.ts'
import { readStreamLines } from '../stream-lines.ts'
import { removeNames } from '../write-file.ts'
import { CHILD_OPTIONS, createArguments, OWN_EXECUTABLE, resolveWithin, waitUntilExit } from './child-process.ts'
import { openLocked, writeHolder } from './locks.ts'
import { deferCloseFd } from './open.ts'

const CHECK_INTERVAL_MS = 250
const EXIT_TIMEOUT_MS = 2000
/** The first output needs no server or daemon, but many processes may start at the same time. */
const START_TIMEOUT_MS = 30_000

/**
 * Runs a task in an isolated process, and kills the process if it stops reporting. A killed process that waits for a
 * FUSE daemon cannot end, but makes no further call.
 * @throws {Refusal} if no process can be started; errors of `told`, after which the process is killed
 */
export async function runErrand(task: IsolatedTask): Promise<IsolatedTaskEnd> {
  const { lock } = task
  const child = startProcess(task, lock === undefined ? undefined : await retryUntilDefined(() => openLocked(lock)))
  if (child.pid === undefined) throw createStartRefusal((await child).code)
  const exited = waitUntilExit(child.nodeChildProcess)
  // Counts checks instead of time, because this process may itself have been stopped.
  let checksWithoutOutput = -START_TIMEOUT_MS / CHECK_INTERVAL_MS
  let failure: { error: unknown } | undefined
  const handleLine = (line: string) => {
    checksWithoutOutput = 0
    try {
      if (line !== '' && failure === undefined) task.told(line)
    } catch (error) {
      failure = { error }
      child.kill('SIGKILL')
    }
  }
  const outputEnd = receiveLines(child.stdout, handleLine)
  child.stdin.on('error', () => {})
  // The pipe stays open: its end tells the child that this process has ended.
  child.stdin.write(`${task.order}\n`)
  let exitStatus = await resolveWithin(CHECK_INTERVAL_MS, exited)
  while (exitStatus === undefined && checksWithoutOutput++ < task.patience / CHECK_INTERVAL_MS)
    exitStatus = await resolveWithin(CHECK_INTERVAL_MS, exited)
  const isSilent = exitStatus === undefined
  if (isSilent) {
    child.kill('SIGKILL')
    exitStatus = await resolveWithin(EXIT_TIMEOUT_MS, exited)
  } else await resolveWithin(EXIT_TIMEOUT_MS, outputEnd)
  child.stdin.destroy()
  child.stdout.destroy()
  child.nodeChildProcess.unref()
  if (exitStatus !== undefined && lock !== undefined)
    tolerateSystemErrors(() => removeNames(nodeFs, dirname(lock), [basename(lock)]))
  if (failure !== undefined) throw failure.error
  return { isSilent, leftBehind: exitStatus === undefined ? child.pid : undefined, pid: child.pid, ended: exited }
}

/**
 * flock(2) belongs to the open file, which both processes share here. The lock is taken before the child starts, and is
 * held until the child's last thread has ended.
 */
function startProcess({ handle }: IsolatedTask, lock: number | undefined) {
  using _ = lock === undefined ? undefined : deferCloseFd(lock)
  const child = execa(OWN_EXECUTABLE, [...createArguments(ISOLATED_PROCESS), String(process.pid)], {
    ...CHILD_OPTIONS,
    // execa's types only accept descriptors up to 9.
    stdio: ['pipe', 'pipe', 'ignore', handle as number as 3, lock === undefined ? 'ignore' : (lock as 3)],
  } as const)
  // The pid in the lock file is only for administrators.
  if (lock !== undefined) tolerateSystemErrors(() => writeHolder(lock, child.pid))
  return child
}

function createStartRefusal(code: string | undefined): Refusal {
  return new Refusal(
    `the process that works where a server or a daemon may hang could not be started (${code ?? 'no reason is known'}): free memory or process numbers of the node`,
  )
}

/** @returns resolves at the end of the stream */
async function receiveLines(stream: AsyncIterable<Uint8Array>, handleLine: (line: string) => void): Promise<void> {
  try {
    for await (const line of readStreamLines(stream)) handleLine(line)
  } catch {
    // The process was killed or its pipe broke. Its exit status shows the reason.
  }
}
