import * as z from 'zod/mini'
import { createFault } from '../errors/fault.ts'
import { Refusal, UnknownFormatRefusal } from '../errors/refusal.ts'
import { NEWLINE_BYTE } from '../kernel/read-file.ts'
import type { ForeignFile } from '../kernel/trusted-files.ts'
import { type JournalRow, JournalRowChecker } from '../ownership/journal/copy.ts'
import { JOURNAL_FORMAT } from '../ownership/journal/tables.ts'
import { isVolumeId } from './volume-id.ts'
import { VOLUME_RECORD_FORMAT, volumeRecordSchema } from './volume-record.ts'

// The file begins with a header, which is a line of JSON. Rows follow: the ACLs in the order of their hashes, then the
// batches of records. A row has a number (u64), a checksum (u32) and a length (u32), little-endian, and its bytes. The
// SHA-256 of all that ends the file. It is no copy of the database. So a pipe can carry it, its reader holds one row in
// memory, and SQLite never opens a file from another node.
const EXPORT_FORMATS = { file: 1, journal: JOURNAL_FORMAT, record: VOLUME_RECORD_FORMAT } as const
const MAX_EXPORT_HEADER_BYTES = 1 << 20
const ROW_FRAME_BYTES = 16
const SHA256_BYTES = 32
/** Bytes. A batch is smaller, even with a thousand inodes whose paths have the greatest length. */
const MAX_EXPORTED_ROW_BYTES = 1 << 29

const countSchema = z.int().check(z.nonnegative())

const journalHeaderSchema = z.object({
  format: z.literal('modekeep-journal'),
  /** Format versions of the file, the journal and the record. */
  formats: z.object({
    file: z.literal(EXPORT_FORMATS.file),
    journal: z.literal(EXPORT_FORMATS.journal),
    record: z.literal(EXPORT_FORMATS.record),
  }),
  /** Version of modekeep that wrote the file, for operators. */
  modekeep: z.string(),
  volume: z.string().check(z.refine(isVolumeId)),
  /** Null if the volume had no readable record. */
  record: z.nullable(volumeRecordSchema()),
  /** Disk of the volume, as the journal has it. */
  disk: z.nullable(z.string()),
  unsettled: z.array(countSchema),
  /** Numbers of rows. */
  acls: countSchema,
  batches: countSchema,
  /** Total bytes of all ACLs and batches, without their frames. */
  bytes: countSchema,
})

/** Header of an exported journal. */
export type JournalHeader = z.infer<typeof journalHeaderSchema>

/** An exported journal that is open for reading. */
export interface ExportedJournal {
  header: JournalHeader
  /** Reads the rows, one at a time. @throws {Refusal} if the file is damaged */
  rows(): Generator<JournalRow>
}

/** Generates the bytes of an export file, piece by piece. @param header without the formats */
export function* serializeExportedJournal(
  header: Omit<JournalHeader, 'format' | 'formats'>,
  rows: Iterable<JournalRow>,
): Generator<Uint8Array> {
  const hash = createSha256()
  const hashed = (bytes: Uint8Array) => {
    hash.update(bytes)
    return bytes
  }
  yield hashed(Buffer.from(`${JSON.stringify({ format: 'modekeep-journal', formats: EXPORT_FORMATS, ...header })}\n`))
  for (const { number, sum, bytes } of rows) {
    const frame = Buffer.alloc(ROW_FRAME_BYTES)
    frame.writeBigUInt64LE(number)
    frame.writeUInt32LE(Number(sum), 8)
    frame.writeUInt32LE(bytes.length, 12)
    yield hashed(frame)
    yield hashed(bytes)
  }
  yield hash.digest()
}

/**
 * Reads the header of an export file and checks the file's size. The rows are checked when they are read.
 * @throws {Refusal} if it is no export file, or has another size than its header says
 * @throws {UnknownFormatRefusal} if this version does not read its format
 */
export function readExportedJournal(file: ForeignFile, path: string): ExportedJournal {
  const start = file.read(0, MAX_EXPORT_HEADER_BYTES)
  const end = start.indexOf(NEWLINE_BYTE) + 1
  const line = start.subarray(0, end)
  const text = parseJournalHeader(line)
  const [theirs, ours] = [text.formats, EXPORT_FORMATS].map((formats) => Object.values(formats ?? {}).join('.'))
  if (text.format === 'modekeep-journal' && theirs !== ours) {
    throw new UnknownFormatRefusal(
      createFault(
        'export-damaged',
        `the file ${path} cannot be used (its format is ${theirs}, this version reads ${ours})`,
        'import it with the version of modekeep that made it',
      ),
    )
  }
  const { success, data: header } = z.safeParse(journalHeaderSchema, text)
  if (!success) throw createExportDamageRefusal(path, 'it does not begin as one')
  if ((header.record?.volume ?? header.volume) !== header.volume)
    throw createExportDamageRefusal(path, 'it names two volumes')
  const size = end + (header.acls + header.batches) * ROW_FRAME_BYTES + header.bytes + SHA256_BYTES
  if (file.size < size) throw createExportDamageRefusal(path, `it is cut off after ${file.size} of ${size} bytes`)
  if (file.size > size) throw createExportDamageRefusal(path, `it has ${file.size} bytes in place of ${size}`)
  return { header, rows: () => readExportedRows(file, path, line, header) }
}

function* readExportedRows(
  file: ForeignFile,
  path: string,
  line: Uint8Array,
  header: JournalHeader,
): Generator<JournalRow> {
  const hash = createSha256()
  let at = 0
  const next = (length: number) => {
    const bytes = file.read(at, length)
    if (bytes.length < length) throw createExportDamageRefusal(path, 'it was cut off while it was read')
    at += length
    return bytes
  }
  const hashed = (length: number) => {
    const bytes = next(length)
    hash.update(bytes)
    return bytes
  }
  if (Buffer.compare(hashed(line.length), line) !== 0)
    throw createExportDamageRefusal(path, 'it has changed while it was read')
  const check = new JournalRowChecker(header.volume, header.acls)
  let remaining = header.bytes
  let last = 0
  for (let index = 0; index < header.acls + header.batches; index++) {
    const frame = Buffer.from(hashed(ROW_FRAME_BYTES))
    const length = frame.readUInt32LE(12)
    if (length > Math.min(remaining, MAX_EXPORTED_ROW_BYTES))
      throw createExportDamageRefusal(path, 'a part of it is longer than what is there')
    remaining -= length
    const [number, sum] = [frame.readBigUInt64LE(), BigInt(frame.readUInt32LE(8))]
    const kind = index < header.acls ? 'acl' : 'batch'
    const row: JournalRow = { kind, number, sum, bytes: hashed(length) }
    try {
      check.checkNext(row)
    } catch (error) {
      if (error instanceof RangeError) throw createExportDamageRefusal(path, error.message)
      throw error
    }
    if (kind === 'batch') last = Number(number)
    yield row
  }
  if (remaining > 0 || Buffer.compare(next(SHA256_BYTES), hash.digest()) !== 0)
    throw createExportDamageRefusal(path, 'its checksum is another one')
  // Number 0 means that a restore has begun.
  const isAscending = header.unsettled.every((number, index, all) => index === 0 || number > (all[index - 1] as number))
  if (!isAscending || (header.unsettled.at(-1) ?? 0) > last)
    throw createExportDamageRefusal(path, 'it names a batch that it does not have')
}

function createExportDamageRefusal(path: string, reason: string): Refusal {
  return Refusal.of(
    'export-damaged',
    `the file ${path} is damaged, or none that "modekeep journal export" has written (${reason})`,
    'export the journal again',
  )
}

function parseJournalHeader(line: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(line).toString())
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function createSha256() {
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256')
}
