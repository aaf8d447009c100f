import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { runVerb } from '../../src/cli/commands/index.ts'
import type { InodeRecord } from '../../src/ownership/inode/record.ts'
import type { JournalRow } from '../../src/ownership/journal/copy.ts'
import { JournalChecksums } from '../../src/ownership/journal/tables.ts'
import { type JournalHeader, readExportedJournal, serializeExportedJournal } from '../../src/state/exported-journal.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { openJournal } from '../../src/state/volume-journal.ts'
import { memoryStage, onKernelStages, type Stage } from '../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../helpers/tree.ts'

const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const

async function exported(stage: Stage): Promise<{ file: string; directory: string }> {
  const directory = `${stage.top}/volumes/data`
  const file = `${stage.top}/data.journal`
  makeTree(stage.fs, directory, SIX_FILES)
  const command = { verb: 'apply', directory, fsGroup: FS_GROUP } as const
  await runVerb(stage.session(), command)
  // A second walk, for a second batch.
  await runVerb(stage.session(), { ...command, fsGroup: { ...FS_GROUP, groupId: 3000 } })
  recordAcls(stage)
  await runVerb(stage.session(), { verb: 'journal', action: 'export', target: { directory }, file, isForced: false })
  return { file, directory }
}

const acl = (fill: number) => new Uint8Array(44).fill(fill)

/** As a walk records inodes of which two have the same ACL. */
function recordAcls(stage: Stage): void {
  const [volume = ''] = listVolumesWithRecords(stage.session())
  using journal = openJournal(stage.session(), volume, true)
  const state = { gid: 5, mode: 0o640 }
  const record = (inode: bigint, before: Uint8Array, after: Uint8Array): InodeRecord => ({
    inode,
    born: 7n,
    path: Buffer.from(`sub/${inode}`),
    uid: 1000,
    before: state,
    capability: undefined,
    acl: { before, seen: before, after },
    modified: 1n,
    size: 3n,
    after: { gid: 3000, mode: 0o640 },
    seen: state,
    intended: state,
    capabilityIntact: true,
    forfeited: false,
    settled: true,
  })
  journal.settle(journal.append([record(100_001n, acl(1), acl(2)), record(100_002n, acl(1), acl(3))]))
  journal.confirm()
}

/** What a file says, taken apart. */
function parts(bytes: Buffer) {
  const file = { size: bytes.length, read: (at: number, length: number) => bytes.subarray(at, at + length) }
  const { header, rows } = readExportedJournal({ ...file, [Symbol.dispose]() {} }, 'whole')
  const all = [...rows()].map((row) => ({ ...row, bytes: Buffer.from(row.bytes) }))
  const of = (wanted: JournalRow['kind']) => all.filter(({ kind }) => kind === wanted)
  return { header, acls: of('acl'), batches: of('batch') }
}

type Parts = ReturnType<typeof parts>

/** Put together again, with the checksum of the whole as it has to be. */
function forged(change: (parts: Parts) => void) {
  return (bytes: Buffer) => {
    const taken = parts(bytes)
    change(taken)
    return Buffer.concat([...serializeExportedJournal(taken.header, [...taken.acls, ...taken.batches])])
  }
}

const withHeader = (change: Partial<JournalHeader> | object) =>
  forged((parts) => {
    Object.assign(parts.header, change)
  })

const turned = (at: (bytes: Buffer) => number) => (bytes: Buffer) => {
  const position = at(bytes)
  bytes[position] = (bytes[position] as number) ^ 1
  return bytes
}

/** The digest over what was changed below it. */
function sealed(bytes: Buffer): Buffer {
  const content = bytes.subarray(0, -32)
  return Buffer.concat([content, createHash('sha256').update(content).digest()])
}

const headerEnd = (bytes: Buffer) => bytes.indexOf('\n') + 1

/** Behind three ACLs of 44 bytes. */
const batchesAt = (bytes: Buffer) => headerEnd(bytes) + 3 * (16 + 44)

/** Another number for the first ACL, with the checksums that it has to have then. */
const renumbered = (to: (parts: Parts) => bigint) =>
  forged((parts) => {
    const [first] = parts.acls
    if (first === undefined) throw new Error('there is no ACL')
    first.number = to(parts)
    first.sum = new JournalChecksums(parts.header.volume).computeAclSum(first.number, first.bytes)
  })

const CASES: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'an empty one': () => Buffer.alloc(0),
  'one of zeros': () => Buffer.alloc(100_000),
  'one that is text': () => Buffer.from('group 2000\n'),
  'one that is truncated in its first line': (bytes) => bytes.subarray(0, 20),
  'one that is truncated after its first line': (bytes) => bytes.subarray(0, headerEnd(bytes)),
  'one that is truncated in an ACL': (bytes) => bytes.subarray(0, headerEnd(bytes) + 100),
  'one that is truncated in a batch': (bytes) => bytes.subarray(0, batchesAt(bytes) + 100),
  'one without its last byte': (bytes) => bytes.subarray(0, -1),
  'one with an extra byte': (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]),
  'one with a changed bit in a record': turned((bytes) => batchesAt(bytes) + 16 + 30),
  'one with a changed bit in its first line': turned((bytes) => bytes.indexOf('"group":3000') + 9),
  'one with a changed bit in its checksum': turned((bytes) => bytes.length - 1),
  'one of a later version': (bytes) => Buffer.from(bytes.toString('latin1').replace('"file":1', '"file":2'), 'latin1'),
  'one whose first line names another volume': withHeader({ volume: '1.2-3-4', record: null }),
  'one whose record is of another volume': forged(({ header }) => {
    if (header.record) header.record.volume = '1.2-3-4'
  }),
  'one whose volume is a path': withHeader({ volume: '../../../etc' }),
  'one with fewer batches than its first line has': withHeader({ batches: 2 ** 40 }),
  'one whose records are larger than any disk': withHeader({ bytes: 2 ** 52 }),
  'one whose batch is larger than the file': (bytes) => {
    bytes.writeUInt32LE(0xffffffff, batchesAt(bytes) + 12)
    return sealed(bytes)
  },
  'one whose batch is shorter than its length': (bytes) => {
    const at = batchesAt(bytes) + 12
    bytes.writeUInt32LE(bytes.readUInt32LE(at) - 1, at)
    return sealed(bytes)
  },
  'one whose records were changed, with a checksum of the whole': forged(({ batches: [first] }) => {
    first?.bytes.writeUInt32LE(7, 28)
  }),
  'one whose batches are in another order': forged(({ batches }) => {
    batches.reverse()
  }),
  'one without its first batch': forged(({ header, batches }) => {
    header.batches--
    header.bytes -= batches.shift()?.bytes.length ?? 0
  }),
  'one with a changed bit in an ACL': turned((bytes) => headerEnd(bytes) + 16 + 30),
  'one with fewer ACLs than its first line has': withHeader({ acls: 2 ** 40 }),
  'one with its batches in place of ACLs': forged(({ header }) => {
    header.acls += header.batches
    header.batches = 0
  }),
  'one with its ACLs in place of batches': forged(({ header }) => {
    header.batches += header.acls
    header.acls = 0
  }),
  'one whose ACL is larger than the file': (bytes) => {
    bytes.writeUInt32LE(0xffffffff, headerEnd(bytes) + 12)
    return sealed(bytes)
  },
  'one whose ACL is longer than its length': (bytes) => {
    bytes.writeUInt32LE(40, headerEnd(bytes) + 12)
    return sealed(bytes)
  },
  'one with an ACL that no inode can have': forged(({ header, acls }) => {
    const [number, bytes] = [9n, Buffer.alloc(65_537)]
    header.acls++
    header.bytes += bytes.length
    acls.push({ kind: 'acl', number, sum: new JournalChecksums(header.volume).computeAclSum(number, bytes), bytes })
  }),
  'one whose ACL was changed, with a checksum of the whole': forged(({ acls: [first] }) => {
    first?.bytes.writeUInt32LE(7, 28)
  }),
  'one without an ACL that it refers to': forged(({ header, acls }) => {
    header.acls--
    header.bytes -= acls.shift()?.bytes.length ?? 0
  }),
  'one without any ACL': forged(({ header, acls }) => {
    header.acls = 0
    for (const { bytes } of acls.splice(0)) header.bytes -= bytes.length
  }),
  'one with a duplicate ACL': forged(({ header, acls }) => {
    const [bytes, number] = [acls.at(-1)?.bytes ?? Buffer.alloc(0), 9n]
    header.acls++
    header.bytes += bytes.length
    acls.push({ kind: 'acl', number, sum: new JournalChecksums(header.volume).computeAclSum(number, bytes), bytes })
  }),
  'one with an ACL whose number is not referred to': renumbered(() => 1_000_000n),
  'one with two ACLs of the same number': renumbered(({ acls }) => acls[1]?.number ?? 0n),
  'one with an ACL without a number': renumbered(() => 0n),
  'one with an ACL number out of range': renumbered(() => 2n ** 32n),
  'one whose ACLs have swapped numbers': forged(({ acls: [first, second] }) => {
    if (first && second) [first.number, second.number] = [second.number, first.number]
  }),
  'one whose ACLs are in another order': forged(({ acls }) => {
    acls.reverse()
  }),
  'one that names a missing batch': withHeader({ unsettled: [1000] }),
  'one that names a batch twice': withHeader({ unsettled: [1, 1] }),
}

it.each(Object.entries(CASES))(
  'a damaged or forged export is refused before anything is written: %s',
  async (_, change) => {
    const stage = memoryStage()
    const { file } = await exported(stage)
    const whole = stage.fs.readFileSync(file) as Buffer
    expect(parts(whole)).toMatchObject({ acls: { length: 3 }, header: { acls: 3 } })
    expect(parts(whole).batches.length).toBeGreaterThan(1)
    const changed = change(Buffer.from(whole))
    expect(changed.equals(whole)).toBe(false)
    stage.fs.writeFileSync(file, changed)
    const there = { ...stage.session(), config: { ...stage.config, stateDir: `${stage.top}/state-b` } }
    const command = { verb: 'journal', action: 'import', file, at: undefined, isDry: false } as const
    await expect(runVerb(there, command)).rejects.toThrow(
      /^the file .*: (export the journal again|import it with the version)/,
    )
    expect(stage.fs.existsSync(there.config.stateDir)).toBe(false)
    // The one that it was made of is not.
    stage.fs.writeFileSync(file, whole)
    expect(await runVerb(there, command)).toMatchObject({ outcome: 'imported' })
  },
)

it('an export whose batches are well-formed but contain no valid record is refused', async () => {
  const stage = memoryStage()
  const { file } = await exported(stage)
  const { header } = parts(stage.fs.readFileSync(file) as Buffer)
  const { crc32 } = process.getBuiltinModule('node:zlib')
  for (const records of [Buffer.alloc(24, 0xff), Buffer.alloc(23), Buffer.from([1, 0, 0, 0, ...Buffer.alloc(21)])]) {
    const sum = BigInt(crc32(records, crc32('1 undefined', crc32(header.volume))))
    const lone = { ...header, unsettled: [], acls: 0, batches: 1, bytes: records.length }
    stage.fs.writeFileSync(
      file,
      Buffer.concat([...serializeExportedJournal(lone, [{ kind: 'batch', number: 1n, sum, bytes: records }])]),
    )
    const command = { verb: 'journal', action: 'import', file, at: undefined, isDry: true } as const
    await expect(runVerb(stage.session(), command)).rejects.toThrow(
      / is damaged, or none that .* has written \(.+\): export/,
    )
  }
})

onKernelStages('an exported journal', (open) => {
  it('has mode 0600 and belongs to root, and replaces no file, link or device', async () => {
    const stage = open()
    const umask = process.umask(0)
    try {
      const { file, directory } = await exported(stage)
      expect(fs.statSync(file)).toMatchObject({ uid: 0, gid: 0, mode: 0o100600 })
      const write = (to: string, isForced: boolean) =>
        runVerb(stage.session(), { verb: 'journal', action: 'export', target: { directory }, file: to, isForced })
      const [link, fifo, device] = ['link', 'fifo', 'device'].map((name) => `${stage.top}/${name}`) as [
        string,
        string,
        string,
      ]
      fs.writeFileSync(`${stage.top}/target`, 'kept')
      fs.symlinkSync(`${stage.top}/target`, link)
      execFileSync('mkfifo', [fifo])
      execFileSync('mknod', [device, 'c', '1', '3'])
      for (const isForced of [false, true]) {
        for (const path of [fifo, device]) await expect(write(path, isForced)).rejects.toThrow('is no regular file')
      }
      await expect(write(link, false)).rejects.toThrow('is there already')
      await write(link, true)
      expect(fs.lstatSync(link).isFile()).toBe(true)
      expect(fs.readFileSync(`${stage.top}/target`, 'utf8')).toBe('kept')
      const dangling = `${stage.top}/dangling`
      fs.symlinkSync(`${stage.top}/nothing`, dangling)
      await expect(write(dangling, false)).rejects.toThrow(/cannot write .*dangling \(EEXIST/)
      expect(fs.existsSync(`${stage.top}/nothing`)).toBe(false)
      expect(fs.readdirSync(stage.top).filter((name) => name.startsWith('.'))).toEqual([])
    } finally {
      process.umask(umask)
      stage.close()
    }
  })

  it('that is no regular file does not block the import', async () => {
    const stage = open()
    try {
      const fifo = `${stage.top}/fifo`
      execFileSync('mkfifo', [fifo])
      for (const file of [fifo, stage.top, '/dev/zero']) {
        const command = { verb: 'journal', action: 'import', file, at: undefined, isDry: false } as const
        await expect(runVerb(stage.session(), command)).rejects.toThrow(/^cannot read .*EINVAL \(no regular file\)/)
      }
      expect(listVolumesWithRecords(stage.session())).toEqual([])
    } finally {
      stage.close()
    }
  })
})
