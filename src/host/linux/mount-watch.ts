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

/** What ends a `watchMountTable` that blocks another thread. */
interface WatchStop {
  /** For that thread. */
  readonly handle: number
  /** Once. */
  now(): void
}

export function createWatchStop(): WatchStop {
  requireSuccess(pipe2(DATA, O_CLOEXEC), 'pipe2', 'a pipe')
  const [handle, writable] = [data.readInt32LE(0), data.readInt32LE(4)]
  return {
    handle,
    now() {
      // Closing alone would not do: a child that is just being started has a copy. EPIPE: that thread has failed.
      tolerateErrno('EPIPE', () => writeSync(writable, '.'))
      close(writable)
    },
  }
}

/**
 * Blocks the calling thread, so not for the main one: until `stop` is used, calls `ready` once all changes are seen,
 * and `changed` after changes of this process's mount table, one or several at once.
 */
export function watchMountTable(stop: WatchStop['handle'], ready: () => void, changed: () => void): void {
  using _stop = deferCloseFd(stop)
  const table = openSync('/proc/self/mountinfo', 'r')
  using _table = deferCloseFd(table)
  ready()
  for (let what = pollTable(table, stop); !what.stopped; what = pollTable(table, stop)) if (what.changed) changed()
}

/** poll(2) without a deadline, which arm64 has as ppoll(2) alone. */
function pollTable(table: number, stop: number): { changed: boolean; stopped: boolean } {
  data.fill(0, 0, 2 * POLLFD_SIZE)
  // A changed table is said with POLLPRI and POLLERR, proc_pid_mounts(5); POLLIN is always there.
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
