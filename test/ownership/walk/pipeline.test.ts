import { beforeEach, describe, expect, it } from 'vitest'
import { type Handle, SystemError } from '../../../src/kernel/host.ts'
import { inspectInode } from '../../../src/ownership/inode/attributes.ts'
import { createInodeRecord, type InodeRecord } from '../../../src/ownership/inode/record.ts'
import { concatBytes, decodeRecord, encodeInodeRecords, splitRecords } from '../../../src/ownership/journal/codec.ts'
import { computeBatchSize, type JournalAnswer, type WalkLedger } from '../../../src/ownership/walk/ledger.ts'
import { InodeChangePipeline } from '../../../src/ownership/walk/pipeline.ts'
import { createWalkReport, type WalkReport } from '../../../src/ownership/walk/report.ts'
import { createWalkStrategy } from '../../../src/ownership/walk/strategies.ts'
import { memoryAcls } from '../../helpers/acls.ts'
import { FS_GROUP } from '../../helpers/mount-records.ts'
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
  report = createWalkReport()
  top = volume.host.inodes.openLinkFree(volume.directory)
  log = volume.world.actions
  log.length = 0
})

const acls = memoryAcls()
const text = (path: Uint8Array) => Buffer.from(path).toString()
const open = () => volume.world.handles.size - 1
const OWN = {
  do: 'apply',
  fsGroup: FS_GROUP,
  isFirstWalk: true,
  startedAtMs: Date.now() + 60_000,
  unfinished: new Set<string>(),
  hasRestoreBegun: false,
} as const
const TASK = createWalkStrategy(OWN)
/** As `earlier` has recorded them. */
const STATES = { before: { gid: 0, mode: 0o640 }, after: { gid: 3000, mode: 0o640 } }
const RESTORE = createWalkStrategy({ do: 'restore', isForced: false })

function ledger(over: Partial<WalkLedger> = {}): WalkLedger {
  const recorded: string[] = []
  const real = {
    isSurvey: false,
    query: ({ keys }) => Array.from({ length: keys.length / 2 }, () => undefined),
    decode: (record, settled) => decodeRecord(record, settled, acls),
    record(records, plain = new Uint8Array()) {
      const decoded = [...splitRecords(plain).map((one) => decodeRecord(one, false, acls)), ...records]
      const names = decoded.map(({ path, after }) => `${text(path)}:${after.gid}`).join(' ')
      log.push(`record ${names}`)
      return BigInt(recorded.push(names))
    },
    settle: (batch) => void log.push(`settle ${recorded[Number(batch) - 1]}`),
    forget: (keys) => void log.push(`forget ${keys.length / 2}`),
  } satisfies Partial<WalkLedger> as Partial<WalkLedger>
  return { ...real, ...over } as WalkLedger
}

function pipeline(over: Partial<WalkLedger> = {}, task = TASK): InodeChangePipeline {
  return new InodeChangePipeline(volume.host.inodes, task, ledger(over), report, { batchSize: 2 })
}

/** As a walk does: what is plain, the pipeline takes as such. */
function take(line: InodeChangePipeline, ...names: string[]): void {
  const { inodes } = volume.host
  for (const name of names) {
    const bytes = Buffer.from(name)
    const handle = inodes.openEntry(top, bytes)
    const isOdd = ODD.includes(name)
    if (!isOdd && line.takePlain(handle, inodes.look(handle), Date.now(), new Uint8Array(), bytes)) continue
    const inode = inspectInode(inodes, handle, inodes.stat(handle), Date.now(), '')
    line.take(inode, bytes, name === 'e' ? 1 : undefined)
  }
}

/** Taken one by one: e has several names. */
const ODD = ['e', 'f']

describe('the pipeline of changes', () => {
  it('a full batch of inodes is recorded, and changed and closed when the next batch is recorded', () => {
    const line = pipeline()
    take(line, 'a')
    expect(log).toEqual([])
    take(line, 'b', 'c')
    expect(log).toEqual(['record a:2000 b:2000'])
    expect(open()).toBe(3)
    take(line, 'd')
    const first = ['chown /volume/a 2000', 'chown /volume/b 2000', 'settle a:2000 b:2000']
    expect(log.slice(1)).toEqual(['record c:2000 d:2000', ...first])
    expect(open()).toBe(2)
    take(line, 'e', 'f')
    expect(line.flush()).toBe(true)
    expect(log.slice(5, 9)).toEqual([
      'record e:2000 f:2000',
      'chown /volume/c 2000',
      'chown /volume/d 2000',
      'settle c:2000 d:2000',
    ])
    expect([open(), report.visited, report.changed]).toEqual([0, 6, 6])
    expect(line.flush()).toBe(false)
  })

  it('a batch skips an inode that another batch is changing, or that the walk changes under another name', () => {
    const line = pipeline({ query: () => ['wait'] })
    take(line, 'a', 'e')
    line.flush()
    expect(log).toEqual(['record a:2000', 'chown /volume/a 2000', 'settle a:2000'])
    expect(open()).toBe(0)
  })

  it('a survey counts changes and makes none', () => {
    const line = pipeline({ isSurvey: true })
    take(line, 'a', 'f')
    line.flush()
    expect([log, open(), report.changed]).toEqual([[], 0, 2])
  })

  it('inodes without ACL, capability and set-id bits get the same records as other inodes, without an object for each', () => {
    const recorded: { objects: number; bytes: Uint8Array }[] = []
    const line = pipeline({
      record(objects, plain = new Uint8Array()) {
        recorded.push({ objects: objects.length, bytes: concatBytes([plain, encodeInodeRecords(objects, acls)]) })
        return 1n
      },
    })
    take(line, 'a', 'b')
    line.flush()
    const records = ['a', 'b'].map((name) => {
      const stat = volume.host.inodes.statEntry(top, Buffer.from(name))
      const found = { stat: { ...stat, gid: 0 }, capability: undefined, acl: undefined }
      const meant = { gid: 0, mode: 0o640 }
      return createInodeRecord(undefined, found, Buffer.from(name), meant, { gid: 2000, mode: 0o640 }, undefined)
    })
    expect(recorded).toEqual([{ objects: 0, bytes: encodeInodeRecords(records, acls) }])
  })

  it('an inode whose first change was refused needs no record', () => {
    refuse('a', 'EPERM')
    const line = pipeline()
    take(line, 'a', 'b')
    line.flush()
    expect(log).toEqual(['record a:2000 b:2000', 'chown /volume/b 2000', 'settle a:2000 b:2000', 'forget 1'])
    expect(report.left).toEqual({ 'immutable or append-only': { count: 1, examples: ['a'] } })
  })

  it('an inode whose change was refused after an earlier walk is recorded with its present state, and settled at once', () => {
    const { inodes } = volume.host
    inodes.chown(inodes.openEntry(top, Buffer.from('e')), 3000)
    const line = pipeline({ query: () => [earlier('e')] })
    refuse('e', 'EDQUOT')
    log.length = 0
    take(line, 'e')
    line.flush()
    expect(log).toEqual(['record e:2000', 'settle e:2000', 'record e:3000', 'settle e:3000'])
    expect(report.left).toEqual({ 'over quota': { count: 1, examples: ['e'] } })
  })

  it.each([
    [
      'in its recorded state is recorded again',
      'c',
      { gid: 3000, mode: 0o640 },
      ['record c:2000', 'chown /volume/c 2000'],
    ],
    [
      'in its recorded state is restored without another record',
      'c',
      { gid: 3000, mode: 0o640 },
      ['chown /volume/c 0'],
    ],
    ['changed since by a user is skipped', 'c', { gid: 4000, mode: 0o640 }, []],
  ] as const)('an inode %s', (what, name, { gid }, expected) => {
    const { inodes } = volume.host
    inodes.chown(inodes.openEntry(top, Buffer.from(name)), gid)
    const restores = what.includes('restored')
    const task = restores ? RESTORE : createWalkStrategy({ ...OWN, isFirstWalk: false })
    const line = pipeline({ findStates: () => [STATES], find: () => earlier(name) }, task)
    log.length = 0
    take(line, name)
    line.flush()
    expect(log.filter((line) => !line.startsWith('settle'))).toEqual([...expected, ...(restores ? ['forget 1'] : [])])
    expect([open(), Object.keys(report.left)]).toEqual([1, expected.length === 0 ? ['changed since by its user'] : []])
  })
})

describe('every inode is closed if a walk ends with an error', () => {
  const fail = () => {
    throw new Error('the disk is full')
  }
  const asking = { ...TASK, needsRecord: () => true }

  it.each<[string, () => InodeChangePipeline]>([
    ['if the journal cannot be queried', () => pipeline({ query: fail }, asking)],
    ['if no record can be written', () => pipeline({ record: fail })],
    ['if a decision fails', () => pipeline({}, { ...TASK, decide: fail })],
    ['if a batch cannot be settled', () => pipeline({ settle: fail })],
  ])('every inode is closed %s', (_what, make) => {
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

  it('every inode of a batch is closed if the change of one inode throws an unexpected error', () => {
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
  [1_000_000, 1, 1200],
  [1024, 1, 231],
  [1024, 2, 154],
  [256, 2, 26],
  [100, 2, 8],
])('a walk with %i handles and %i pipelines records %i inodes at a time', (limit, pipelines, size) => {
  expect(computeBatchSize(limit, pipelines)).toBe(size)
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
function earlier(name: string): Exclude<JournalAnswer, 'wait'> {
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
    intended: before,
    capabilityIntact: true,
    forfeited: false,
    after: { gid: 3000, mode: 0o640 },
    settled: true,
  }
  const [one] = splitRecords(encodeInodeRecords([record], acls))
  return one && { ...one, settled: true }
}
