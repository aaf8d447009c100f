import { closeSync, openSync, writeSync } from 'node:fs'
import { errorCode } from '../host.ts'
import { O_CLOEXEC } from './constants.ts'
import { address, libc, run, view } from './libc.ts'

// include/uapi/asm-generic/poll.h
const POLLIN = 1
const POLLPRI = 2
const POLLHUP = 16
const FOREVER = -1

/** struct pollfd: int fd, short events, short revents. */
const ENTRY = 8

/** What ends a `watchMountTable` that blocks another thread. */
export interface Stop {
  /** For that thread. */
  readonly handle: number
  /** Once; again it does nothing. */
  now(): void
}

export function makeStop(): Stop {
  run('pipe2', 'a pipe', () => libc.pipe2(address('struct'), O_CLOEXEC))
  const [handle, writable] = [view('struct').readInt32LE(0), view('struct').readInt32LE(4)]
  let done = false
  return {
    handle,
    now() {
      if (done) return
      done = true
      // Closing alone would not do: a child that is just being started has a copy.
      writeSync(writable, '.')
      libc.close(writable)
    },
  }
}

/**
 * Blocks the calling thread, so not for the main one: until `stop` is used, calls `ready` once all changes are seen,
 * and `changed` after changes of this process's mount table, one or several at once.
 */
export function watchMountTable(stop: Stop['handle'], ready: () => void, changed: () => void): void {
  const table = openSync('/proc/self/mountinfo', 'r')
  try {
    ready()
    for (let what = poll(table, stop); !what.stopped; what = poll(table, stop)) if (what.changed) changed()
  } finally {
    closeSync(table)
    libc.close(stop)
  }
}

function poll(table: number, stop: number): { changed: boolean; stopped: boolean } {
  const entries = view('struct')
  try {
    run('poll', 'the mount table', () => {
      entries.fill(0, 0, 2 * ENTRY)
      // A changed table is said with POLLPRI and POLLERR, proc_pid_mounts(5); POLLIN is always there.
      entries.writeInt32LE(table, 0)
      entries.writeInt16LE(POLLPRI, 4)
      entries.writeInt32LE(stop, ENTRY)
      entries.writeInt16LE(POLLIN, ENTRY + 4)
      return libc.poll(address('struct'), 2n, FOREVER)
    })
  } catch (error) {
    if (errorCode(error) !== 'EINTR') throw error
    return { changed: false, stopped: false }
  }
  return {
    changed: (entries.readInt16LE(6) & POLLPRI) !== 0,
    stopped: (entries.readInt16LE(ENTRY + 6) & (POLLIN | POLLHUP)) !== 0,
  }
}
