import { beforeEach, describe, expect, it } from 'vitest'
import { type Handle, SystemError } from '../../../src/host/host.ts'
import { look } from '../../../src/ownership/inode/attributes.ts'
import type { InodeRecord } from '../../../src/ownership/inode/record.ts'
import type { Answer, Ledger } from '../../../src/ownership/walk/ledger.ts'
import { batchSize, Pipeline } from '../../../src/ownership/walk/pipeline.ts'
import { newReport, type WalkReport } from '../../../src/ownership/walk/report.ts'
import { taskOf } from '../../../src/ownership/walk/tasks.ts'
import { makeTree } from '../../helpers/tree.ts'
import { MemoryVolume } from '../volume.ts'

let volume: MemoryVolume
let report: WalkReport
let top: Handle
/** In their order: what was recorded, changed, settled and forgotten. */
let log: string[]
beforeEach(() => {
  volume = new MemoryVolume()
  makeTree(
    volume.fs,
    volume.directory,
    ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `file ${name} 0640`),
  )
  report = newReport()
  top = volume.host.inodes.openLinkFree(volume.directory)
  log = volume.world.actions
  log.length = 0
})

const text = (path: Uint8Array) => Buffer.from(path).toString()
const open = () => volume.world.handles.size - 1
const TASK = taskOf({
  do: 'own',
  order: { group: 2000, access: 'keep' },
  firstTime: true,
  started: Date.now() + 60_000,
  unfinished: new Set(),
})

function ledger(over: Partial<Ledger> = {}): Ledger {
  return {
    ask:
      ({ keys }) =>
      () =>
        Array.from({ length: keys.length / 2 }, () => undefined),
    record(records) {
      const names = records.map(({ path, after }) => `${text(path)}:${after.gid}`).join(' ')
      log.push(`record ${names}`)
      return { awaitDurable: () => void log.push('wait'), settle: () => void log.push(`settle ${names}`) }
    },
    forget: (keys) => void log.push(`forget ${keys.length / 2}`),
    ...over,
  }
}

function pipeline(over: Partial<Ledger> = {}, task = TASK): Pipeline {
  return new Pipeline(volume.host.inodes, task, ledger(over), report, { batchSize: 2 })
}

function take(line: Pipeline, ...names: string[]): void {
  const { inodes } = volume.host
  for (const name of names) {
    const bytes = Buffer.from(name)
    const handle = inodes.openEntry(top, bytes)
    line.take(look(inodes, handle, inodes.stat(handle), top, bytes), bytes, name === 'e' ? name : undefined)
  }
}

describe('what a walk has to change', () => {
  it('is recorded in full batches when the next is collected, and made and let go of when the one after that is', () => {
    const line = pipeline()
    take(line, 'a', 'b', 'c')
    expect(log).toEqual([])
    expect(open()).toBe(3)
    take(line, 'd')
    expect(log).toEqual(['record a:2000 b:2000'])
    expect(open()).toBe(4)
    take(line, 'e', 'f')
    const first = ['wait', 'chown /volume/a 2000', 'chown /volume/b 2000', 'settle a:2000 b:2000']
    expect(log.slice(1)).toEqual([...first, 'record c:2000 d:2000'])
    expect(open()).toBe(4)
    expect(line.flush()).toBe(true)
    expect(log.slice(6, 10)).toEqual(['wait', 'chown /volume/c 2000', 'chown /volume/d 2000', 'settle c:2000 d:2000'])
    expect([open(), report.visited, report.changed]).toEqual([0, 6, 6])
    expect(line.flush()).toBe(false)
  })

  it('is left to the thread that changes it already, or to another of its names', () => {
    const line = pipeline({ ask: () => () => ['wait'] })
    take(line, 'a', 'e')
    line.flush()
    expect(log).toEqual(['record a:2000', 'wait', 'chown /volume/a 2000', 'settle a:2000'])
    expect(open()).toBe(0)
  })

  it('is not changed where nothing is recorded: a survey counts it', () => {
    const line = pipeline({ record: () => undefined })
    take(line, 'a', 'b')
    line.flush()
    expect([log, open(), report.changed]).toEqual([[], 0, 2])
  })

  it('and was refused before anything was made of it need not be remembered', () => {
    refuse('a', 'EPERM')
    const line = pipeline()
    take(line, 'a', 'b')
    line.flush()
    expect(log).toEqual(['record a:2000 b:2000', 'wait', 'chown /volume/b 2000', 'settle a:2000 b:2000', 'forget 1'])
    expect(report.left).toEqual({ 'immutable or append-only': { count: 1, examples: ['a'] } })
  })

  it('and was refused after an earlier walk is recorded as what it still is, and that is settled at once', () => {
    const { inodes } = volume.host
    inodes.chown(inodes.openEntry(top, Buffer.from('e')), 3000)
    const line = pipeline({ ask: () => () => [recordOf('e')] })
    refuse('e', 'EDQUOT')
    log.length = 0
    take(line, 'e')
    line.flush()
    expect(log).toEqual(['record e:2000', 'wait', 'settle e:2000', 'record e:3000', 'settle e:3000'])
    expect(report.left).toEqual({ 'over quota': { count: 1, examples: ['e'] } })
  })
})

describe('every inode is let go of where a walk ends with an error', () => {
  const fail = () => {
    throw new Error('the disk is full')
  }
  const asking = { ...TASK, asksFor: () => true }

  it.each<[string, () => Pipeline]>([
    ['the journal cannot be asked', () => pipeline({ ask: fail }, asking)],
    ['nothing can be recorded', () => pipeline({ record: fail })],
    ['a decision fails', () => pipeline({}, { ...TASK, decide: fail })],
    [
      'what was recorded does not become durable',
      () => pipeline({ record: () => ({ awaitDurable: fail, settle: fail }) }),
    ],
    ['a batch cannot be settled', () => pipeline({ record: () => ({ awaitDurable() {}, settle: fail }) })],
  ])('%s', (_what, make) => {
    const { inodes } = volume.host
    const { close } = inodes
    const closed: Handle[] = []
    inodes.close = (handle) => {
      closed.push(handle)
      close(handle)
    }
    const line = make()
    expect(() => {
      take(line, 'a', 'b', 'c', 'd', 'e', 'f')
    }).toThrow('the disk is full')
    line.close()
    expect(open()).toBe(0)
    // A number may be another's by now.
    expect(new Set(closed).size).toBe(closed.length)
  })

  it('one of them fails in a way that is not its own', () => {
    refuse('b', 'EIO')
    const line = pipeline()
    take(line, 'a', 'b', 'c')
    expect(() => line.flush()).toThrow('EIO')
    line.close()
    expect(log).not.toContain('settle a:2000 b:2000')
    expect(open()).toBe(0)
  })
})

it.each([
  [1_000_000, 1, 700],
  [1024, 1, 301],
  [1024, 4, 60],
  [100, 4, 8],
])('with %i handles each of a number of threads (%i) holds %i inodes at a time', (limit, threads, size) => {
  expect(batchSize(limit, threads)).toBe(size)
})

function refuse(name: string, code: string): void {
  const { inodes } = volume.host
  const { chown } = inodes
  inodes.chown = (handle, gid) => {
    if (inodes.pathOf(handle).endsWith(`/${name}`)) throw new SystemError('fchownat', code, name)
    chown(handle, gid)
  }
}

/** What an earlier walk has recorded of a file that it gave to group 3000. */
function recordOf(name: string): Answer {
  const { inodes } = volume.host
  const { inode, born, modified, size } = inodes.statEntry(top, Buffer.from(name))
  const before = { gid: 0, mode: 0o640 }
  const acl = { before: undefined, seen: undefined, after: undefined }
  const record: InodeRecord = {
    inode,
    born,
    path: Buffer.from(name),
    uid: 0,
    before,
    capability: undefined,
    acl,
    modified,
    size,
    seen: before,
    meant: before,
    seenWhole: true,
    forfeited: false,
    after: { gid: 3000, mode: 0o640 },
    settled: true,
  }
  return record
}
