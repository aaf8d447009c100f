import { openSync, writeSync } from 'node:fs'
import { tolerateErrno } from '../host.ts'
import { DATA, data, requireSuccess, systemCall } from './kernel.ts'
import { close, deferCloseFd, O_CLOEXEC } from './open.ts'

const pipe2 = systemCall('pipe2')
const ppoll = systemCall('ppoll')

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
  requireSuccess(pipe2(DATA, O_CLOEXEC), 'pipe2', 'a pipe')
  const [handle, writable] = [data.readInt32LE(0), data.readInt32LE(4)]
  return {
    handle,
    now() {
      // Closing alone is not enough, because a child that is being started may have a copy. EPIPE: the watching thread
      // has failed.
      tolerateErrno('EPIPE', () => writeSync(writable, '.'))
      close(writable)
    },
  }
}

/**
 * Blocks the calling thread until `stop` is used, so it must not run in the main thread. Calls `ready` once no later
 * change can be missed. Calls `changed` after one or several changes of this process's mount table.
 */
export function watchMountTable(stop: WatchStop['handle'], ready: () => void, changed: () => void): void {
  using _stop = deferCloseFd(stop)
  const table = openSync('/proc/self/mountinfo', 'r')
  using _table = deferCloseFd(table)
  ready()
  for (let event = pollTable(table, stop); !event.stopped; event = pollTable(table, stop)) if (event.changed) changed()
}

/** Calls poll(2) without a deadline. arm64 only has ppoll(2). */
function pollTable(table: number, stop: number): { changed: boolean; stopped: boolean } {
  data.fill(0, 0, 2 * POLLFD_SIZE)
  // POLLPRI and POLLERR report a changed table, proc_pid_mounts(5). POLLIN is always set.
  data.writeInt32LE(table, 0)
  data.writeInt16LE(POLLPRI, 4)
  data.writeInt32LE(stop, POLLFD_SIZE)
  data.writeInt16LE(POLLIN, POLLFD_SIZE + 4)
  const ready = ppoll(DATA)
  if (ready === EINTR) return { changed: false, stopped: false }
  requireSuccess(ready, 'ppoll', 'the mount table')
  return {
    changed: (data.readInt16LE(6) & POLLPRI) !== 0,
    stopped: (data.readInt16LE(POLLFD_SIZE + 6) & (POLLIN | POLLHUP)) !== 0,
  }
}
