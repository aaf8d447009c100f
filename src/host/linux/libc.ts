import { dlopen, getRawPointer, toArrayBuffer } from 'node:ffi'
import { getSystemErrorName } from 'node:util'
import { SystemError } from '../host.ts'

// The only module that calls C. Two facts of node:ffi (Node 26.10) rule it:
// an address does not keep its buffer alive, hence the one arena held by this module for ever;
// pointers declared as 'function' and passed as BigInt avoid a slow wrapper (150-200 ns a call).
const { functions } = dlopen(null, {
  // Up to three arguments take a quick way of their own; without O_CREAT there is no fourth.
  openat: { arguments: ['i32', 'pointer', 'i32'], return: 'i32' },
  close: { arguments: ['i32'], return: 'i32' },
  read: { arguments: ['i32', 'function', 'u64'], return: 'i64' },
  lseek: { arguments: ['i32', 'i64', 'i32'], return: 'i64' },
  statx: { arguments: ['i32', 'function', 'i32', 'u32', 'function'], return: 'i32' },
  fchownat: { arguments: ['i32', 'function', 'u32', 'u32', 'i32'], return: 'i32' },
  fstatfs: { arguments: ['i32', 'function'], return: 'i32' },
  ioctl: { arguments: ['i32', 'u64', 'function'], return: 'i32' },
  getxattr: { arguments: ['function', 'function', 'function', 'u64'], return: 'i64' },
  setxattr: { arguments: ['function', 'function', 'function', 'u64', 'i32'], return: 'i32' },
  listxattr: { arguments: ['function', 'function', 'u64'], return: 'i64' },
  removexattr: { arguments: ['function', 'function'], return: 'i32' },
  fcntl: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
  flock: { arguments: ['i32', 'i32'], return: 'i32' },
  poll: { arguments: ['function', 'u64', 'i32'], return: 'i32' },
  pipe2: { arguments: ['function', 'i32'], return: 'i32' },
  umount2: { arguments: ['function', 'i32'], return: 'i32' },
  syscall: { arguments: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], return: 'i64' },
  __errno_location: { arguments: [], return: 'pointer' },
})

export const libc = functions

const ARENA_SIZE = (1 << 17) + (1 << 16)
const arena = Buffer.alloc(ARENA_SIZE)
const base = getRawPointer(arena)
const errno = new Int32Array(toArrayBuffer(functions.__errno_location(), 4, false))

/** Fixed places in the arena, far enough apart for the largest thing put there. */
const PLACES = {
  name: 0,
  second: 8192,
  struct: 16384,
  value: 20480,
  empty: 98304,
  stack: 98320,
  entries: 1 << 17,
} as const
const SIZES = {
  name: 8192,
  second: 8192,
  struct: 4096,
  value: 65536 + 4096,
  empty: 1,
  stack: 32752,
  entries: 1 << 16,
} as const
export type Place = keyof typeof PLACES

/** The arena's bytes at a place: a view that stays valid, whose content the next call may change. */
export function view(place: Place): Buffer {
  return arena.subarray(PLACES[place], PLACES[place] + SIZES[place])
}

const ADDRESSES = Object.fromEntries(
  Object.entries(PLACES).map(([place, offset]) => [place, base + BigInt(offset)]),
) as Record<Place, bigint>

export function address(place: Place): bigint {
  return ADDRESSES[place]
}

/** The path "", for calls on a handle itself (AT_EMPTY_PATH): a byte of the arena that stays zero. */
export const EMPTY_PATH = address('empty')

/** What makes and ends a child, apart from the rest: every function costs each start of the driver some 15 µs. */
export function libcOfProcesses() {
  const { functions, lib } = dlopen(null, {
    clone: { arguments: ['function', 'function', 'i32', 'function'], return: 'i32' },
    waitpid: { arguments: ['i32', 'function', 'i32'], return: 'i32' },
  })
  return { ...functions, exit: lib.getSymbol('_exit') }
}

let lastName: Uint8Array | undefined

/**
 * Puts NUL-terminated bytes at a place and returns their address. A NUL inside would silently cut a name: refused.
 * Bytes are not put twice when they are those put last: they must not change.
 */
export function put(place: Place, bytes: Uint8Array | string): bigint {
  if (place === 'name') {
    if (bytes === lastName) return ADDRESSES.name
    lastName = undefined
    write(place, bytes)
    if (typeof bytes !== 'string') lastName = bytes
    return ADDRESSES.name
  }
  return write(place, bytes)
}

function write(place: Place, bytes: Uint8Array | string): bigint {
  const data = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
  const start = PLACES[place]
  if (data.length >= SIZES[place]) throw new SystemError('name', 'EINVAL', describe(bytes))
  // Names are short: a loop is quicker than the calls that look for a byte and copy.
  for (let index = 0; index < data.length; index++) {
    const byte = data[index] ?? 0
    if (byte === 0) throw new SystemError('name', 'EINVAL', describe(bytes))
    arena[start + index] = byte
  }
  arena[start + data.length] = 0
  return ADDRESSES[place]
}

// V8 itself makes system calls between ours and the reading of errno (about one false value in 10^7 failing calls).
// A failed call has changed nothing, so it is repeated until two equal values follow each other.
const MOST_REPEATS = 8

const TOO_OLD = "this node's kernel does not have it; modekeep needs Linux 5.12 or newer"

/**
 * Runs a call that returns a negative number on failure.
 * @param prepare fills the arena and calls; run again after a failure, so it must put its arguments each time
 * @throws {SystemError}
 */
export function run(
  syscall: string,
  target: string | Uint8Array,
  prepare: () => number | bigint,
  detail?: () => string,
): number {
  let previous = 0
  for (let attempt = 0; attempt < MOST_REPEATS; attempt++) {
    const result = Number(prepare())
    const code = errno[0] ?? 0
    if (result >= 0) return result
    if (code !== 0 && code === previous) {
      const name = errorName(code)
      throw new SystemError(syscall, name, describe(target), name === 'ENOSYS' ? TOO_OLD : detail?.())
    }
    previous = code
  }
  throw new SystemError(syscall, 'EIO', describe(target), 'errno did not settle')
}

/** The same for a call that answers otherwise when it is repeated: errno is believed the first time. */
export function runOnce(syscall: string, target: string, call: () => number | bigint, detail?: () => string): number {
  const result = Number(call())
  if (result >= 0) return result
  throw new SystemError(syscall, errorName(errno[0] || EIO), target, detail?.())
}

const EIO = 5

/** libuv names no error of a damaged file system. */
function errorName(code: number): string {
  return code === 117 ? 'EUCLEAN' : getSystemErrorName(-code)
}

/** Whether the last failed call said `code`; only for values that V8's own calls never leave behind. */
export function lastErrorIs(code: number): boolean {
  return errno[0] === code
}

function describe(target: string | Uint8Array): string {
  return typeof target === 'string' ? target : JSON.stringify(Buffer.from(target).toString())
}
