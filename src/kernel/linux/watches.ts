import { type FSWatcher, openSync, statSync, watch, writeSync } from 'node:fs'
import { getErrno, tolerateErrno } from '../host.ts'
import { CALL_DATA_OFFSET, callData, createSystemCall, requireCallSuccess } from './kernel.ts'
import { closeDescriptor, deferDescriptorClose, O_CLOEXEC, openCachedPath } from './open.ts'
import { readProcessStat } from './processes.ts'

/** Reports created, removed and renamed entries of directories: inotify(7). */
export class DirectoryWatches {
  readonly #changed: () => void
  readonly #failed: (error: Error) => void
  /** The keys contain path and inode, so a recreated directory gets a new watch. */
  #watches = new Map<string, FSWatcher>()
  #reportedCodes = new Set<string>()

  readonly #mayWait: boolean

  /**
   * @param failed called once for each errno that prevents watching, such as ENOSPC and EMFILE at a limit
   * @param mayWait if false, a directory is skipped if its lookup could wait for a locked directory
   */
  constructor(changed: () => void, failed: (error: Error) => void, mayWait = true) {
    this.#changed = changed
    this.#failed = failed
    this.#mayWait = mayWait
  }

  /**
   * Watches exactly these directories and skips missing ones.
   * @returns true if a directory is new: it may have changed just before
   */
  follow(directories: readonly string[]): boolean {
    using handles = new DisposableStack()
    const pathByKey = new Map<string, string>()
    for (const path of directories) {
      const openedPath = this.#attempt(() => (this.#mayWait ? path : openCachedDirectory(path, handles)))
      const key = openedPath === undefined ? undefined : this.#attempt(() => readDirectoryKey(openedPath, path))
      if (openedPath !== undefined && key !== undefined) pathByKey.set(key, openedPath)
    }
    for (const [key, watcher] of this.#watches) {
      if (pathByKey.has(key)) continue
      watcher.close()
      this.#watches.delete(key)
    }
    let isNew = false
    for (const [key, path] of pathByKey) {
      if (this.#watches.has(key)) continue
      const watcher = this.#attempt(() => watch(path, { persistent: false }, this.#changed))
      if (watcher === undefined) continue
      watcher.on('error', (error) => this.#reportOnce(error))
      this.#watches.set(key, watcher)
      isNew = true
    }
    return isNew
  }

  close(): void {
    this.follow([])
  }

  #attempt<T>(call: () => T): T | undefined {
    try {
      return call()
    } catch (error) {
      this.#reportOnce(error as Error)
      return undefined
    }
  }

  #reportOnce(error: Error): void {
    const code = getErrno(error) ?? ''
    if (IGNORED_WATCH_ERRNOS.has(code) || this.#reportedCodes.has(code)) return
    this.#reportedCodes.add(code)
    this.#failed(error)
  }
}

const IGNORED_WATCH_ERRNOS: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EAGAIN'])

/** @returns a path that leads to the directory until `held` is disposed of */
function openCachedDirectory(path: string, handles: DisposableStack): string {
  const handle = openCachedPath(path)
  handles.use(deferDescriptorClose(handle))
  return `/proc/self/fd/${handle}`
}

function readDirectoryKey(openedPath: string, path: string): string {
  const { dev, ino, birthtimeNs } = statSync(openedPath, { bigint: true })
  return `${dev}:${ino}:${birthtimeNs}:${path}`
}

const pipe2 = createSystemCall('pipe2')
const ppoll = createSystemCall('ppoll')

// include/uapi/asm-generic/poll.h
const POLLIN = 1
const POLLPRI = 2
const POLLHUP = 16
const EINTR = -4

/** struct pollfd: int fd, short events, short revents. */
const POLLFD_SIZE = 8

/** Ends a `watchMountTable` that blocks another thread. */
interface WatchStop {
  /** The descriptor for the watching thread. */
  readonly handle: number
  /** May be called once. */
  now(): void
}

export function createWatchStop(): WatchStop {
  requireCallSuccess(pipe2(CALL_DATA_OFFSET, O_CLOEXEC), 'pipe2', 'a pipe')
  const [handle, writable] = [callData.readInt32LE(0), callData.readInt32LE(4)]
  return {
    handle,
    now() {
      // Closing alone is not enough, because a child that is being started may have a copy. EPIPE: the watching thread
      // has failed.
      tolerateErrno('EPIPE', () => writeSync(writable, '.'))
      closeDescriptor(writable)
    },
  }
}

/**
 * Blocks the calling thread until `stop` is used, so it must not run in the main thread. Calls `ready` once no later
 * change can be missed. Calls `changed` after one or several changes of this process's mount table.
 */
export function watchMountTable(stop: WatchStop['handle'], ready: () => void, changed: () => void): void {
  using _stop = deferDescriptorClose(stop)
  const table = openSync('/proc/self/mountinfo', 'r')
  using _table = deferDescriptorClose(table)
  ready()
  for (let event = pollMountTable(table, stop); !event.stopped; event = pollMountTable(table, stop))
    if (event.changed) changed()
}

/** Calls poll(2) without a deadline. arm64 only has ppoll(2). */
function pollMountTable(table: number, stop: number): { changed: boolean; stopped: boolean } {
  callData.fill(0, 0, 2 * POLLFD_SIZE)
  // POLLPRI and POLLERR report a changed table, proc_pid_mounts(5). POLLIN is always set.
  callData.writeInt32LE(table, 0)
  callData.writeInt16LE(POLLPRI, 4)
  callData.writeInt32LE(stop, POLLFD_SIZE)
  callData.writeInt16LE(POLLIN, POLLFD_SIZE + 4)
  const ready = ppoll(CALL_DATA_OFFSET)
  if (ready === EINTR) return { changed: false, stopped: false }
  requireCallSuccess(ready, 'ppoll', 'the mount table')
  return {
    changed: (callData.readInt16LE(6) & POLLPRI) !== 0,
    stopped: (callData.readInt16LE(POLLFD_SIZE + 6) & (POLLIN | POLLHUP)) !== 0,
  }
}

/** The kernel notifies only a parent when a process ends, and a daemon's parent has ended. So processes are polled. */
const PROCESS_POLL_INTERVAL_MS = 1000

/** A process disappears before its last thread has closed its descriptors. Until then its mounts appear healthy. */
const PROCESS_END_CALLBACK_COUNT = 3

/** Calls back within about a second after a watched process has ended, and for a few seconds more. */
export class ProcessWatch {
  readonly #ended: () => void
  /** Maps pids to start times, which distinguish a process from a later one with the same pid. */
  readonly #processes = new Map<number, string>()
  #timer: NodeJS.Timeout | undefined
  #callbacksLeft = 0

  constructor(ended: () => void) {
    this.#ended = ended
  }

  /** Adds processes to watch until they end. A process that has already ended is reported too. */
  follow(pids: readonly number[]): void {
    for (const pid of pids) {
      if (!this.#processes.has(pid)) this.#processes.set(pid, readProcessStat(pid)?.start ?? PROCESS_ENDED)
    }
    if (this.#processes.size > 0)
      this.#timer ??= setInterval(() => this.#checkProcesses(), PROCESS_POLL_INTERVAL_MS).unref()
  }

  close(): void {
    this.#processes.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #checkProcesses(): void {
    const gone = [...this.#processes].filter(([pid, start]) => readProcessStat(pid)?.start !== start)
    for (const [pid] of gone) this.#processes.delete(pid)
    if (gone.length > 0) this.#callbacksLeft = PROCESS_END_CALLBACK_COUNT
    if (this.#callbacksLeft > 0) {
      this.#callbacksLeft--
      this.#ended()
    } else if (this.#processes.size === 0) {
      this.close()
    }
  }
}

const PROCESS_ENDED = 'gone'
