import type { ChildProcess } from 'node:child_process'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { Refusal } from '../../errors/refusal.ts'
import { nodeFs } from '../path-handle.ts'
import { getErrno, tolerateSystemErrors } from '../system-error.ts'
import { ResponseTimer, resolveWithinTimeout, retryUntilDefined } from '../waiting.ts'
import {
  ISOLATED_WORKER_VERB,
  readStreamLines,
  type StartWorker,
  type WorkerCall,
  type WorkerCallEnd,
  type WorkerReport,
} from '../worker-process.ts'
import { removeNamesInDirectory } from '../write-file.ts'
import { openLockedFile, writeLockHolderPid } from './locks.ts'
import { deferDescriptorClose } from './open.ts'

/** Options of execa for a child that inherits nothing from this process but its descriptors. */
export const CHILD_PROCESS_OPTIONS = {
  env: {},
  extendEnv: false,
  cwd: '/',
  // A session of its own: signals to the child's group reach no other process, and signals of a terminal do not reach
  // the child.
  detached: true,
  cleanup: false,
  buffer: false,
  reject: false,
} as const

export interface ExitStatus {
  code: number | null
  signal: NodeJS.Signals | null
}

/** Resolves when the process has ended, even if another process still has its output open. */
export function waitForProcessExit(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((done) => child.once('exit', (code, signal) => done({ code, signal })))
}

/** The running executable. The file at its path may already be another version. */
const OWN_EXECUTABLE_PATH = '/proc/self/exe'

/** The built executable has no URL and needs no entry script. */
const ENTRY_SCRIPT_ARGUMENTS =
  import.meta.url === '' ? [] : [fileURLToPath(new URL('../../../driver/main.ts', import.meta.url))]

/**
 * Starts this executable as a worker. Its tasks are lines of JSON on its stdin, its reports are lines of JSON on its
 * stdout. A worker that writes anything else is killed.
 * @param descriptors of the worker, from 3 on
 */
function startWorkerProcess<Outcome, Progress>(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  descriptors: readonly (number | 'ignore')[],
  onReport: (report: WorkerReport<Outcome, Progress>) => void,
) {
  const child = execa(OWN_EXECUTABLE_PATH, [...ENTRY_SCRIPT_ARGUMENTS, ...args], {
    ...CHILD_PROCESS_OPTIONS,
    env,
    // execa's types only accept descriptors up to 9.
    stdio: ['pipe', 'pipe', 'ignore', ...(descriptors as 3[])],
  } as const)
  const exited = waitForProcessExit(child.nodeChildProcess)
  // A write to a worker that has ended fails; its exit is reported instead.
  child.stdin.on('error', () => {})
  const outputEnd = readReports()

  async function readReports(): Promise<void> {
    try {
      for await (const line of readStreamLines(child.stdout)) onReport(JSON.parse(line))
    } catch {
      // The line is no valid report, or the pipe broke.
      child.kill('SIGKILL')
    }
  }
  return { child, exited, outputEnd }
}

/**
 * Starts workers that run tasks one after the other, and continue after this process has ended.
 * @param verb the executable's first argument for such a worker
 */
export function startWorkers<Job, Outcome, Progress = never>(
  verb: string,
  { MODEKEEP_CONFIG, MODEKEEP_SOCKET }: NodeJS.ProcessEnv,
): StartWorker<Job, Outcome, Progress> {
  const env = {
    ...(MODEKEEP_CONFIG !== undefined && { MODEKEEP_CONFIG }),
    ...(MODEKEEP_SOCKET !== undefined && { MODEKEEP_SOCKET }),
  }
  return ({ onReport, onExit }) => {
    const { child, exited, outputEnd } = startWorkerProcess<Outcome, Progress>([verb], env, [], onReport)
    void reportExit()

    async function reportExit(): Promise<void> {
      await outputEnd
      if (child.pid === undefined) return onExit(`could not be started (${(await child).code ?? 'no reason is known'})`)
      const { code, signal } = await exited
      onExit(signal === null ? `ended with exit status ${code}` : `was ended by ${signal}`)
    }

    return {
      pid: child.pid,
      send: (job) => void child.stdin.write(`${JSON.stringify(job)}\n`),
      kill: () => void child.kill('SIGKILL'),
      close: () => void child.stdin.end(),
    }
  }
}

const WORKER_EXIT_TIMEOUT_MS = 2000
/** The first report needs no server or daemon, but many processes may start at the same time. */
const WORKER_START_TIMEOUT_MS = 30_000

/**
 * Runs a task in a worker of its own, and kills the worker if it stops reporting. A killed worker that waits for a FUSE
 * daemon cannot end, but makes no further call.
 * @throws {Refusal} if no process can be started; errors of `onReport`, after which the worker is killed
 */
export async function runTaskInWorker({
  task,
  handle,
  lock,
  patienceMs,
  onReport,
}: WorkerCall): Promise<WorkerCallEnd> {
  let failure: { error: unknown } | undefined
  const timedOut = Promise.withResolvers<undefined>()
  const lockFd = lock === undefined ? undefined : await retryUntilDefined(() => openLockedFile(lock))
  using timer = new ResponseTimer(WORKER_START_TIMEOUT_MS + patienceMs, () => timedOut.resolve(undefined))
  const { child, exited, outputEnd } = startLockHolder(handle, lockFd, (report) => {
    timer.reset(patienceMs)
    try {
      if (failure === undefined) onReport(report)
    } catch (error) {
      failure = { error }
      child.kill('SIGKILL')
    }
  })
  if (child.pid === undefined) throw createWorkerStartRefusal((await child).code)
  child.stdin.on('error', (error) => {
    // A worker that has ended reads nothing, and its exit is reported.
    if (getErrno(error) !== 'EPIPE') failure ??= { error }
  })
  // The pipe stays open: its end tells the child that this process has ended.
  child.stdin.write(`${task}\n`)
  let exitStatus = await Promise.race([exited, timedOut.promise])
  const isSilent = exitStatus === undefined
  if (isSilent) {
    child.kill('SIGKILL')
    exitStatus = await resolveWithinTimeout(WORKER_EXIT_TIMEOUT_MS, exited)
  } else await resolveWithinTimeout(WORKER_EXIT_TIMEOUT_MS, outputEnd)
  child.stdin.destroy()
  child.stdout.destroy()
  child.nodeChildProcess.unref()
  if (exitStatus !== undefined && lock !== undefined)
    tolerateSystemErrors(() => removeNamesInDirectory(nodeFs, dirname(lock), [basename(lock)]))
  if (failure !== undefined) throw failure.error
  return { isSilent, leftBehind: exitStatus === undefined ? child.pid : undefined, pid: child.pid, ended: exited }
}

/**
 * Starts a worker that holds a lock. flock(2) belongs to the open file, which both processes share here. The lock is
 * taken before the child starts, and is held until the child's last thread has ended.
 */
function startLockHolder(
  handle: number,
  lock: number | undefined,
  onReport: (report: WorkerReport<unknown, unknown>) => void,
) {
  using _ = lock === undefined ? undefined : deferDescriptorClose(lock)
  const started = startWorkerProcess(
    [ISOLATED_WORKER_VERB, String(process.pid)],
    {},
    [handle, lock ?? 'ignore'],
    onReport,
  )
  // The pid in the lock file is only for administrators.
  if (lock !== undefined) tolerateSystemErrors(() => writeLockHolderPid(lock, started.child.pid))
  return started
}

function createWorkerStartRefusal(code: string | undefined): Refusal {
  return Refusal.of(
    'worker-failed',
    `the worker process for calls that may hang could not be started (${code ?? 'no reason is known'})`,
    `free memory or process numbers of the node`,
  )
}
