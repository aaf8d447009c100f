import { openSync, writeSync } from 'node:fs'
import { unless } from '../host.ts'
import { DATA, data, done, systemCall } from './kernel.ts'
import { close, closingFd, O_CLOEXEC } from './open.ts'

const pipe2 = systemCall('pipe2')
const ppoll = systemCall('ppoll')

// include/uapi/asm-generic/poll.h
const POLLIN = 1
const POLLPRI = 2
const POLLHUP = 16
const EINTR = -4

/** struct pollfd: int fd, short events, short revents. */
const ENTRY = 8

/** What ends a `watchMountTable` that blocks another thread. */
interface Stop {
  /** For that thread. */
  readonly handle: number
  /** Once. */
  now(): void
}

export function makeStop(): Stop {
  done(pipe2(DATA, O_CLOEXEC), 'pipe2', 'a pipe')
  const [handle, writable] = [data.readInt32LE(0), data.readInt32LE(4)]
  return {
    handle,
    now() {
      // Closing alone would not do: a child that is just being started has a copy. EPIPE: that thread has failed.
      unless('EPIPE', () => writeSync(writable, '.'))
      close(writable)
    },
  }
}

/**
 * Blocks the calling thread, so not for the main one: until `stop` is used, calls `ready` once all changes are seen,
 * and `changed` after changes of this process's mount table, one or several at once.
 */
export function watchMountTable(stop: Stop['handle'], ready: () => void, changed: () => void): void {
  using _stop = closingFd(stop)
  const table = openSync('/proc/self/mountinfo', 'r')
  using _table = closingFd(table)
  ready()
  for (let what = poll(table, stop); !what.stopped; what = poll(table, stop)) if (what.changed) changed()
}

/** poll(2) without a deadline, which arm64 has as ppoll(2) alone. */
function poll(table: number, stop: number): { changed: boolean; stopped: boolean } {
  data.fill(0, 0, 2 * ENTRY)
  // A changed table is said with POLLPRI and POLLERR, proc_pid_mounts(5); POLLIN is always there.
  data.writeInt32LE(table, 0)
  data.writeInt16LE(POLLPRI, 4)
  data.writeInt32LE(stop, ENTRY)
  data.writeInt16LE(POLLIN, ENTRY + 4)
  const ready = ppoll(DATA)
  if (ready === EINTR) return { changed: false, stopped: false }
  done(ready, 'ppoll', 'the mount table')
  return {
    changed: (data.readInt16LE(6) & POLLPRI) !== 0,
    stopped: (data.readInt16LE(ENTRY + 6) & (POLLIN | POLLHUP)) !== 0,
  }
}
