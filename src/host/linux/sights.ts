import type { Handle, Look, Name, Sights } from '../host.ts'
import { listsByName, noteListing } from './attributes.ts'
import {
  AT_SYMLINK_NOFOLLOW,
  arenaBytes,
  callNamed,
  MANY,
  prepare,
  putEmpty,
  ROWS,
  resultOf,
  runPrepared,
} from './kernel.ts'
import { HOLD, O_CLOEXEC } from './open.ts'
import { MASK, noteDevice, OF_HANDLE, OF_NAME, StatxAt } from './statx.ts'

const openat = callNamed('openat')
const statx = callNamed('statx')
const listxattrat = callNamed('listxattrat')

// Each held entry takes two rows.
const SIZE = ROWS / 2
/** With its NUL. */
const NAME = 256
const STATX = 256
// Longer lists are asked for alone.
const LIST = 512
const NAMES = MANY
const STATS = NAMES + SIZE * NAME
const LISTS = STATS + SIZE * STATX

// A view for each of a million names would keep the collector busy.
const views: Uint8Array[] = []

const GONE = -1
const FAILED = -1

/** There is one in a thread: what it has seen lies in the thread's arena. */
class LinuxSights implements Sights {
  readonly size = SIZE
  readonly #handles = new Int32Array(SIZE)
  readonly #stats = new Int32Array(SIZE)
  readonly #lists = new Int32Array(SIZE)
  readonly #lengths = new Int32Array(SIZE)
  readonly #look = new StatxAt(STATS)
  #parent = GONE as Handle
  #isHeld = false

  setName(at: number, block: Uint8Array, start: number, length: number): void {
    const place = NAMES + at * NAME
    // Short enough for a loop to be quicker than calls.
    for (let index = 0; index < length; index++) arenaBytes[place + index] = block[start + index] as number
    arenaBytes[place + length] = 0
    this.#lengths[at] = length
  }

  nameOf(at: number): Name {
    const length = this.#lengths[at] as number
    const kept = at * NAME + length
    views[kept] ??= arenaBytes.subarray(NAMES + at * NAME, NAMES + at * NAME + length)
    return views[kept]
  }

  look(parent: Handle, count: number): void {
    this.#begin(parent, false)
    for (let at = 0; at < count; at++) prepare(at, statx, parent, NAMES + at * NAME, OF_NAME, MASK, STATS + at * STATX)
    runPrepared(count)
    for (let at = 0; at < count; at++) this.#stats[at] = resultOf(at)
  }

  hold(parent: Handle, count: number): void {
    this.#begin(parent, true)
    for (let at = 0; at < count; at++) prepare(at, openat, parent, NAMES + at * NAME, HOLD | O_CLOEXEC)
    runPrepared(count)
    for (let at = 0; at < count; at++) this.#handles[at] = resultOf(at)
    this.#askHeld(parent, count)
  }

  #askHeld(parent: Handle, count: number): void {
    const empty = putEmpty()
    const lists = listsByName()
    const rows = lists ? 2 : 1
    for (let at = 0; at < count; at++) {
      prepare(at * rows, statx, this.#handles[at], empty, OF_HANDLE, MASK, STATS + at * STATX)
      const list = LISTS + at * LIST
      if (lists) prepare(at * 2 + 1, listxattrat, parent, NAMES + at * NAME, AT_SYMLINK_NOFOLLOW, list, LIST)
    }
    runPrepared(count * rows)
    for (let at = 0; at < count; at++) {
      this.#stats[at] = resultOf(at * rows)
      this.#lists[at] = lists ? resultOf(at * 2 + 1) : FAILED
    }
    if (lists && count > 0) noteListing(this.#lists[0] as number)
  }

  #begin(parent: Handle, isHeld: boolean): void {
    this.#parent = parent
    this.#isHeld = isHeld
  }

  stat(at: number): Look | undefined {
    if (this.#stats[at] !== 0) return undefined
    this.#look.at = STATS + at * STATX
    // A mount's root is on another device than its directory's handle.
    const holder = this.#isHeld ? (this.#handles[at] as Handle) : this.#parent
    if (this.#isHeld || !this.#look.mountRoot) noteDevice(holder, this.#look.device)
    return this.#look
  }

  handle(at: number): Handle | undefined {
    const handle = this.#handles[at] as Handle
    return handle < 0 ? undefined : handle
  }

  attributeNames(at: number): string | undefined {
    const size = this.#lists[at] as number
    if (size <= 0) return size === 0 ? '' : undefined
    return arenaBytes.toString('latin1', LISTS + at * LIST, LISTS + at * LIST + size)
  }
}

export const linuxSights = new LinuxSights()
