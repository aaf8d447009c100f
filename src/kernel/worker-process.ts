import type { Handle } from './inodes.ts'
import { NEWLINE_BYTE } from './read-file.ts'

/** A report of a worker, one line of JSON: a sign of life with a new limit (see ResponseTimer), progress, or the outcome. */
export type WorkerReport<Outcome, Progress> =
  | { patienceMs?: number | null }
  | { progress: Progress }
  | { outcome: Outcome }

/** A process that runs one task at a time, and may continue after its server has ended. */
export interface WorkerProcess<Job> {
  readonly pid?: number | undefined
  send(job: Job): void
  /** Sends SIGKILL, which every task of modekeep tolerates. A process that waits in the kernel ends when the kernel returns. */
  kill(): void
  /** Lets the process end after its task. */
  close(): void
}

export interface WorkerEvents<Outcome, Progress> {
  onReport(report: WorkerReport<Outcome, Progress>): void
  /** Is called once, after all reports. @param how phrase for messages, such as "ended with exit status 1" */
  onExit(how: string): void
}

export type StartWorker<Job, Outcome, Progress = never> = (
  events: WorkerEvents<Outcome, Progress>,
) => WorkerProcess<Job>

let processors: number | undefined

/** Returns the number of processors that this process may use. The first call loads node:os and reads control groups. */
export function countProcessors(): number {
  processors ??= process.getBuiltinModule('node:os').availableParallelism()
  return processors
}

/** First arguments of workers that read one task after the other from their stdin. */
export const CSI_WORKER_VERB = 'csi-worker'
export const NRI_WORKER_VERB = 'nri-worker'

/** The first argument of the worker that answers calls of the loader. */
export const RESIDENT_WORKER_VERB = 'resident-worker'

/** The first argument of a worker that runs one task for its parent, and ends with it. The second is the parent's pid. */
export const ISOLATED_WORKER_VERB = 'isolated-worker'

/** The kernel's name of CSI's workers, isolated workers and FlexVolume calls: /proc/PID/comm, at most 15 bytes. */
export const WORKER_PROCESS_NAME = 'modekeep worker'

/** The descriptor of the task's directory in such a worker. The first line of stdin contains the task. */
export const ISOLATED_TASK_DIRECTORY_FD = 3

/** A task for a worker that ends with this process, on a file system whose server or daemon may hang. */
export interface WorkerCall {
  /** The task, in one line. */
  task: string
  /** The directory to work on. */
  handle: Handle
  /** A lock file. The worker holds the lock until it ends, even if its parent ends first. The file contains its pid. */
  lock: string | undefined
  /** Milliseconds without a report, after which the worker is killed. */
  patienceMs: number
  onReport(report: WorkerReport<unknown, unknown>): void
}

export interface WorkerCallEnd {
  /** True if the worker was killed because it did not respond. */
  isSilent: boolean
  /** The pid of a killed worker that cannot end before its server or daemon responds. */
  leftBehind: number | undefined
  pid: number
  /** Resolves when the process has ended. */
  ended: Promise<unknown>
}

/** Killed processes that the kernel does not let end, by the namespace or the mount that they worked for. */
export class UnkillableProcesses {
  readonly #owners = new Map<number, string>()

  /** Counts a process until it has ended. */
  add(pid: number, owner: string, ended: Promise<unknown>): void {
    this.#owners.set(pid, owner)
    void ended.then(() => this.#owners.delete(pid))
  }

  of(owner: string): number[] {
    return [...this.#owners].flatMap(([pid, its]) => (its === owner ? [pid] : []))
  }
}

/**
 * Yields the complete lines of a stream and drops an unterminated rest. Splits only at newlines: node:readline also
 * splits at characters that JSON may contain.
 */
export async function* readStreamLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = []
  for await (const chunk of stream) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE_BYTE); end >= 0; end = chunk.indexOf(NEWLINE_BYTE, start)) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)]).toString()
      rest = []
      start = end + 1
    }
    if (start < chunk.length) rest.push(chunk.subarray(start))
  }
}
