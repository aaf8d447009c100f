import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { KernelAddon } from '../../../src/kernel/linux/kernel.ts'
import { hasKernelFeature } from '../../helpers/kernel-features.ts'
import { addSkipReason } from '../../helpers/needs.ts'

const GIVEN_AWAY = join(import.meta.dirname, 'given-away.ts')
const ADDON = join(import.meta.dirname, `../../../driver/kernel/${process.arch}.node`)

function load(): KernelAddon {
  const loaded = { exports: {} as KernelAddon }
  process.dlopen(loaded, ADDON)
  return loaded.exports
}

/** Counts mappings that end in a guard of 64 KiB. Each environment has them behind its rows and its arena. */
function mapped(): number {
  const lines = fs.readFileSync('/proc/self/maps', 'utf8').split('\n')
  const spans = lines.map((line) => {
    const [, from = '0', to = '0', rights] = /^(\w+)-(\w+) (\S+)/.exec(line) ?? []
    return { size: Number.parseInt(to, 16) - Number.parseInt(from, 16), rights }
  })
  return spans.filter(({ size, rights }, index) => {
    return size === 0x10000 && rights === '---p' && spans[index - 1]?.rights === 'rw-p'
  }).length
}

async function inWorker(script: string): Promise<unknown> {
  const worker = new Worker(
    `const addon = { exports: {} }; process.dlopen(addon, ${JSON.stringify(ADDON)});
    const { arena, rows, calls, run } = addon.exports; ${script}`,
    { eval: true },
  )
  const answer = await new Promise((done, fail) => worker.once('message', done).once('error', fail))
  await worker.terminate()
  return answer
}

describe('the kernel addon', () => {
  it('returns the result of a system call, or -errno after a failure', () => {
    const { arena, rows, calls, run } = load()
    Buffer.from(arena).write('/no such file\0/\0')
    const openat = calls.openat ?? -1
    const close = calls.close ?? -1
    rows.set([openat, -100, 0])
    rows.set([openat, -100, 14, 0o2000000], 8)
    run(2)
    const [absent, root] = [rows[7], rows[15] ?? -1]
    rows.set([close, root])
    rows.set([close, root], 8)
    run(2)
    expect([absent, rows[7], rows[15]]).toEqual([-2, 0, -9])
    expect(root).toBeGreaterThan(2)
  })

  it('makes the prepared system calls up to the first refused one', () => {
    const { rows, calls, run } = load()
    for (const at of [0, 8, 16]) rows.set([calls.close ?? -1, at === 8 ? 0.5 : -1, 0, 0, 0, 0, 0, 7], at)
    run(3)
    expect([rows[7], rows[15], rows[23]]).toEqual([-9, Number.NaN, 7])
  })

  it('keeps the memory of its calls if JavaScript transfers the ArrayBuffer of that memory', () => {
    const { arena, rows, calls, run } = load()
    const given = arena.transfer()
    rows.set([calls.openat ?? -1, -100, 0])
    run(1)
    expect(arena.byteLength).toBe(0)
    expect(given.byteLength).toBeGreaterThan(0)
    // The name is empty.
    expect(rows[7]).toBe(-2)
  })

  it('has separate call memory in each Node environment, and frees the memory with the environment', async () => {
    const before = mapped()
    const own = load()
    Buffer.from(own.arena).write('own')
    expect(mapped()).toBe(before + 1)
    const script = `const { parentPort } = require('node:worker_threads')
      rows.set([calls.close, -1]); run(1)
      parentPort.postMessage([Buffer.from(arena).toString('latin1', 0, 3), rows[7]])`
    for (let round = 0; round < 5; round++) expect(await inWorker(script)).toEqual(['\0\0\0', -9])
    expect(mapped()).toBe(before + 1)
    expect(Buffer.from(own.arena).toString('latin1', 0, 3)).toBe('own')
  })
})

// struct change: 40 bytes.
const CHANGE_WORDS = 10
const [HANDLE, SEEN_GROUP, SEEN_MODE, GROUP, MODE, NEEDS_SAME_TIME, RESULT] = [2, 3, 4, 5, 6, 7, 8]
const [MADE, ODD, UNTOUCHED] = [0, 1, 7]
const [JOBS, CHANGES, LOOKERS, SIGHTS, MOST_OTHERS, TASKS] = [48, 1200, 2, 256, 3, 64]

const isRoot = process.getuid?.() === 0
// Before Linux 6.6 the walk itself changes modes.
const canChangeModes = hasKernelFeature('fchmodat2')
const WANTED_MODE = canChangeModes ? '660' : '640'
const suiteTitle = `changes that the kernel addon makes${isRoot ? '' : ' (skipped: only root gives files to any group; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  /** Creates a file of group 5 with the mode 0640. */
  function file(): number {
    const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-addon-`)
    const handle = fs.openSync(`${directory}/file`, 'w')
    onTestFinished(() => {
      fs.closeSync(handle)
      fs.rmSync(directory, { recursive: true })
    })
    fs.fchownSync(handle, 0, 5)
    fs.fchmodSync(handle, 0o640)
    return handle
  }

  const seen = (handle: number) => {
    const { gid, mode } = fs.fstatSync(handle)
    return [gid, (mode & 0o7777).toString(8)]
  }

  const timeOf = (handle: number) => {
    const { ctimeNs } = fs.fstatSync(handle, { bigint: true })
    return Number(ctimeNs / 1_000_000_000n) * 1000 + Number(ctimeNs % 1_000_000_000n) / 1e6
  }

  /** Opens the same file once more, because a successful change closes its handle. */
  function copyOf(handle: number): number {
    try {
      return fs.openSync(`/proc/self/fd/${handle}`, 'r')
    } catch {
      return handle
    }
  }

  /** Changes a file of group 5 to group 6 and, if the kernel can, mode 0660. */
  function put(
    { changes }: KernelAddon,
    at: number,
    handle: number,
    more: Record<number, number> = {},
    time = 0,
  ): void {
    new Float64Array(changes)[(at * CHANGE_WORDS) / 2] = time
    const words = new Uint32Array(changes)
    const usual = {
      [HANDLE]: copyOf(handle),
      [SEEN_GROUP]: 5,
      [SEEN_MODE]: 0o100640,
      [GROUP]: 6,
      [MODE]: canChangeModes ? 0o660 : 0o640,
    }
    for (const [word, value] of Object.entries({ ...usual, [NEEDS_SAME_TIME]: 0, [RESULT]: UNTOUCHED, ...more }))
      words[at * CHANGE_WORDS + Number(word)] = value
  }

  const resultOf = ({ changes }: KernelAddon, at: number) => new Uint32Array(changes)[at * CHANGE_WORDS + RESULT]

  /** Makes one change in this thread. */
  function made(handle: number, more: Record<number, number> = {}, time = 0): number | undefined {
    const addon = load()
    put(addon, 0, handle, more, time)
    addon.start(0, 1, 0)
    addon.finish(0)
    return resultOf(addon, 0)
  }

  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1))
  }

  it('have separate memory for each job', () => {
    expect(load().changes.byteLength).toBe(JOBS * CHANGES * CHANGE_WORDS * 4)
  })

  it('close the handle of a completed change, and no other', () => {
    const [there, other] = [file(), file()]
    const copies = [there, other].map((handle) => fs.openSync(`/proc/self/fd/${handle}`, 'r'))
    expect(made(there, { [HANDLE]: copies[0] ?? -1 })).toBe(MADE)
    expect(() => fs.fstatSync(copies[0] ?? -1)).toThrow('EBADF')
    expect(made(other, { [HANDLE]: copies[1] ?? -1, [SEEN_GROUP]: 9 })).toBe(ODD)
    fs.closeSync(copies[1] ?? -1)
  })

  it('set the group and the permission bits of a file', () => {
    const handle = file()
    expect(made(handle)).toBe(MADE)
    expect(seen(handle)).toEqual([6, WANTED_MODE])
  })

  it.skipIf(!canChangeModes)(
    addSkipReason(
      'set only the group or only the mode if the other is already right',
      canChangeModes ? '' : 'needs fchmodat2: run it on Linux 6.6 or newer',
    ),
    () => {
      const handle = file()
      expect(made(handle, { [GROUP]: 5 })).toBe(MADE)
      expect(seen(handle)).toEqual([5, '660'])
      expect(made(handle, { [SEEN_MODE]: 0o100660 })).toBe(MADE)
      expect(seen(handle)).toEqual([6, WANTED_MODE])
    },
  )

  it('touch nothing if group and bits are already right', () => {
    const handle = file()
    const time = timeOf(handle)
    expect(made(handle, { [GROUP]: 5, [MODE]: 0o640 })).toBe(MADE)
    expect(timeOf(handle)).toBe(time)
  })

  it('are made when the job is finished, or earlier by another thread', async () => {
    const addon = load()
    const [here, there] = [file(), file()]
    put(addon, 0, here)
    put(addon, CHANGES, there)
    addon.start(0, 1, 0)
    addon.start(1, 1, 1)
    await until(() => resultOf(addon, CHANGES) !== UNTOUCHED)
    expect([resultOf(addon, 0), seen(here)]).toEqual([UNTOUCHED, [5, '640']])
    expect([resultOf(addon, CHANGES), seen(there)]).toEqual([MADE, [6, WANTED_MODE]])
    for (const job of [0, 1]) addon.finish(job)
    expect([resultOf(addon, 0), seen(here)]).toEqual([MADE, [6, WANTED_MODE]])
  })

  it('are made for the first N entries of a job, and each entry has its own result', () => {
    const addon = load()
    const handles = [file(), file(), file()]
    for (const [at, handle] of handles.entries()) put(addon, at, handle, at === 0 ? { [SEEN_GROUP]: 7 } : {})
    addon.start(0, 2, 0)
    expect(addon.finish(0)).toBe(1)
    expect(handles.map((_, at) => resultOf(addon, at))).toEqual([ODD, MADE, UNTOUCHED])
    expect(handles.map((handle) => seen(handle)[0])).toEqual([5, 6, 5])
  })

  it.each([
    ['its group differs', { [SEEN_GROUP]: 6 }],
    ['its mode differs', { [SEEN_MODE]: 0o100600 }],
    ['it is of another type', { [SEEN_MODE]: 0o040640 }],
    ['its ctime differs', { [NEEDS_SAME_TIME]: 1 }],
  ])('skip a file that differs from the inspected one: %s', (_, more) => {
    const handle = file()
    const time = timeOf(handle)
    expect(made(handle, more, time - 0.001)).toBe(ODD)
    expect(seen(handle)).toEqual([5, '640'])
    expect(timeOf(handle)).toBe(time)
  })

  it('are made for a file with the same ctime', () => {
    const handle = file()
    expect(made(handle, { [NEEDS_SAME_TIME]: 1 }, timeOf(handle))).toBe(MADE)
    expect(seen(handle)).toEqual([6, WANTED_MODE])
  })

  it('are not made for a closed handle', () => {
    const handle = fs.openSync('/', 'r')
    fs.closeSync(handle)
    for (const closed of [handle, -1, 2 ** 31 - 1]) expect(made(closed)).toBe(ODD)
  })

  it('are made for many more jobs than there are threads', async () => {
    const addon = load()
    const handle = file()
    const turn = (round: number) => {
      const [from, to] = round % 2 === 0 ? [5, 6] : [6, 5]
      put(addon, 0, handle, { [SEEN_GROUP]: from, [GROUP]: to, [MODE]: 0o640 })
      addon.start(0, 1, 1)
    }
    for (let round = 0; round < 3 * TASKS; round++) {
      turn(round)
      addon.finish(0)
      expect(resultOf(addon, 0)).toBe(MADE)
    }
    // The abandoned jobs have ended, so there are free ones.
    await new Promise((resolve) => setTimeout(resolve, 50))
    turn(0)
    await until(() => resultOf(addon, 0) === MADE)
    expect(seen(handle)).toEqual([6, '640'])
  })

  it('are made for all jobs concurrently', () => {
    const addon = load()
    const each = 10
    const handles = Array.from({ length: JOBS * each }, file)
    const jobs = Array.from({ length: JOBS }, (_, job) => job)
    for (const [index, handle] of handles.entries()) {
      put(addon, Math.floor(index / each) * CHANGES + (index % each), handle, { [GROUP]: 100 + index, [MODE]: 0o640 })
    }
    for (const job of jobs) addon.start(job, each, 1)
    for (const job of jobs) expect(addon.finish(job)).toBe(0)
    expect(handles.map(seen)).toEqual(handles.map((_, index) => [100 + index, '640']))
  })

  it('are made once each by any number of threads of a job', () => {
    const addon = load()
    const handles = Array.from({ length: CHANGES }, file)
    for (let round = 0; round < 20; round++) {
      const [from, to] = [5 + round, 6 + round]
      for (const [at, handle] of handles.entries())
        put(addon, at, handle, { [SEEN_GROUP]: from, [GROUP]: to, [MODE]: 0o640 })
      addon.start(0, CHANGES, MOST_OTHERS)
      // A change made twice would report `odd`, and would close the handle of another file.
      expect(addon.finish(0)).toBe(0)
      expect(new Set(handles.map((handle) => fs.fstatSync(handle).gid))).toEqual(new Set([to]))
    }
  })

  it('are refused for a job that is not idle, and for arguments that are not numbers', () => {
    const { changes, start, finish } = load() as KernelAddon &
      Record<'start' | 'finish', (...args: unknown[]) => unknown>
    const noNumber = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '0', undefined, null, {}, Symbol('x'), 0n]
    for (const one of [...noNumber, JOBS]) expect(() => start(one, 1, 0)).toThrow(RangeError)
    for (const one of [...noNumber, JOBS + LOOKERS]) expect(() => finish(one)).toThrow(RangeError)
    for (const one of [...noNumber, CHANGES + 1]) expect(() => start(0, one, 0)).toThrow(RangeError)
    for (const one of [...noNumber, MOST_OTHERS + 1]) expect(() => start(0, 1, one)).toThrow(RangeError)
    for (const few of [[], [0], [0, 0]]) expect(() => start(...few)).toThrow(RangeError)
    expect(() => finish()).toThrow(RangeError)
    // AT_FDCWD is not a handle, so the change reports `odd`.
    new Int32Array(changes)[HANDLE] = -100
    start(0, 1, 0)
    expect(() => start(0, 1, 0)).toThrow(RangeError)
    expect(finish(0)).toBe(1)
    start(0, 0, 0)
    expect(finish(0)).toBe(0)
    // The job is idle or already done, so there is nothing to wait for.
    finish(0)
    finish(1)
  })

  it.each(['returns', 'exits', 'throws', 'is terminated', 'is terminated while it waits', 'has waited for some'])(
    'may still be running when an environment ends that %s',
    async (end) => {
      const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-addon-`)
      onTestFinished(() => fs.rmSync(directory, { recursive: true }))
      const path = `${directory}/file`
      fs.writeFileSync(path, '')
      fs.chownSync(path, 0, 5)
      fs.chmodSync(path, 0o640)
      const { stdout } = await promisify(execFile)(process.execPath, [GIVEN_AWAY, ADDON, path, end])
      expect(stdout).toBe('alive\n')
    },
  )
})

// struct sight: 640 bytes.
const SIGHT = 640
const [STATX, LIST, NAME] = [16, 272, 384]
const [LOOK, HOLD, HOLD_AND_LIST] = [0, 1, 2]
const UNTOLD = 7

describe('directory entries that the kernel addon inspects', () => {
  /** Creates a directory with a file, a dangling link and a directory. */
  function directory(): { path: string; handle: number } {
    const path = fs.mkdtempSync(`${tmpdir()}/modekeep-addon-`)
    fs.writeFileSync(`${path}/file`, 'content')
    fs.symlinkSync('/nowhere', `${path}/link`)
    fs.mkdirSync(`${path}/below`)
    const handle = fs.openSync(path, 'r')
    onTestFinished(() => {
      fs.closeSync(handle)
      fs.rmSync(path, { recursive: true })
    })
    return { path, handle }
  }

  function seen(parent: number, how: number, names: readonly (string | Buffer)[], which = 0, others: 0 | 1 = 0) {
    const addon = load()
    const bytes = Buffer.from(addon.sights, which * SIGHTS * SIGHT, SIGHTS * SIGHT)
    for (const [at, name] of names.entries()) {
      const sight = bytes.subarray(at * SIGHT, (at + 1) * SIGHT).fill(0)
      for (const word of [0, 4, 8]) sight.writeInt32LE(UNTOLD, word)
      sight.set(typeof name === 'string' ? Buffer.from(`${name}\0`) : name, NAME)
    }
    addon.look(JOBS + which, parent, how, names.length, others)
    expect(addon.finish(JOBS + which)).toBe(0)
    return names.map((_, at) => {
      const sight = bytes.subarray(at * SIGHT, (at + 1) * SIGHT)
      const [handle = 0, look, list = 0] = [0, 4, 8].map((word) => sight.readInt32LE(word))
      if (how !== LOOK && handle >= 0) onTestFinished(() => fs.closeSync(handle))
      const [mode, inode] = [sight.readUInt16LE(STATX + 0x1c), sight.readBigUInt64LE(STATX + 0x20)]
      return { handle, look, list, mode, inode, attributes: sight.toString('latin1', LIST, LIST + Math.max(0, list)) }
    })
  }

  it('have memory for two batches of 256 entries', () => {
    expect(load().sights.byteLength).toBeGreaterThanOrEqual(LOOKERS * SIGHTS * SIGHT)
  })

  it.each([0, 1] as const)('are inspected by name without being opened (others: %i)', (others) => {
    const { path, handle } = directory()
    const found = seen(handle, LOOK, ['file', 'link', 'below', 'gone'], 1, others)
    const names = ['file', 'link', 'below']
    expect(found.map(({ look }) => look)).toEqual([0, 0, 0, -2])
    const types = found.slice(0, 3).map(({ mode }) => mode & 0o170000)
    expect(types).toEqual([0o100000, 0o120000, 0o040000])
    const { inode } = found[0] ?? expect.unreachable()
    expect(inode).toBe(fs.lstatSync(`${path}/${names[0]}`, { bigint: true }).ino)
    expect(found.map((one) => one.handle)).toEqual([UNTOLD, UNTOLD, UNTOLD, UNTOLD])
  })

  it('are opened with O_PATH and inspected through the handle, links themselves', () => {
    const { path, handle } = directory()
    const found = seen(handle, HOLD, ['link', 'gone', 'file'])
    const held = found.map((one) => (one.handle < 0 ? one.handle : fs.readlinkSync(`/proc/self/fd/${one.handle}`)))
    expect(held).toEqual([`${path}/link`, -2, `${path}/file`])
    expect(found.map(({ look, list }) => [look, list])).toEqual([
      [0, UNTOLD],
      [UNTOLD, UNTOLD],
      [0, UNTOLD],
    ])
  })

  it('return their extended attribute names, or the error of the listing', () => {
    const { handle } = directory()
    const [file, gone] = seen(handle, HOLD_AND_LIST, ['file', 'gone'])
    // The file has no attributes, or the kernel lacks listxattrat(2): before Linux 6.13.
    expect([0, -38, -1]).toContain(file?.list)
    expect(gone).toMatchObject({ handle: -2, look: UNTOLD, list: UNTOLD })
  })

  it('are inspected up to the end of the batch memory, and not beyond', () => {
    const { handle } = directory()
    // A name has at most 255 bytes. The 256th byte is not read.
    const found = seen(handle, HOLD, [Buffer.alloc(SIGHT - NAME, 'x'), 'file'])
    expect(found.map((one) => Math.min(one.handle, 0))).toEqual([-2, 0])
  })

  it('are refused for a closed directory, a running job or unknown flags', () => {
    const { look, finish } = load() as { look(...args: unknown[]): void; finish(job: number): number }
    const usual = [JOBS, 3, LOOK, 0, 0]
    const odd = [-1, 0.5, Number.NaN, '0', undefined, null, {}, 0n]
    const most = [JOBS + LOOKERS, 2 ** 31, HOLD_AND_LIST + 1, SIGHTS + 1, MOST_OTHERS + 1]
    for (const place of usual.keys()) {
      for (const one of [...odd, most[place]])
        expect(() => look(...usual.with(place, one as number))).toThrow(RangeError)
      expect(() => look(...usual.slice(0, place))).toThrow(RangeError)
    }
    // This is a job of changes.
    expect(() => look(JOBS - 1, 3, LOOK, 0, 0)).toThrow(RangeError)
    look(...usual.with(3, 1))
    expect(() => look(...usual)).toThrow(RangeError)
    finish(JOBS)
    look(...usual)
    expect(seen(2 ** 31 - 2, LOOK, ['file']).map((one) => one.look)).toEqual([-9])
  })
})
