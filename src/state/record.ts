import * as z from 'zod/mini'
import { createFault } from '../errors/fault.ts'
import { Refusal, UnknownFormatRefusal } from '../errors/refusal.ts'
import { computeCrc32 } from '../kernel/crc32.ts'
import { retryWhileRemoved } from '../kernel/waiting.ts'
import type { ReplacementDurability } from '../kernel/write-file.ts'
import { isSweptSinceBoot, type Store } from './record-directories.ts'

/** Describes how one kind of record is stored. */
interface RecordKindDefinition<T extends object, Owner> {
  /** Version of the format, written in the file. It changes whenever an older version would misread the record. */
  format: number
  /** Creates the schema when a record is read, because most calls read few kinds. */
  schema(): z.ZodMiniType<T>
  /** Returns the mount directory, the volume or the container of a record; undefined: the node has one of the kind. */
  ownerOf(record: T): Owner
  /** Returns the path of the record's file. */
  locate(store: Store, owner: Owner): string
  /** Returns whether a record is needless after a reboot. Its write then does not wait for the disk. */
  isOfThisBoot?(record: T, store: Store): boolean
  /** Unwritten and needless records are removed by the first call after a reboot: see forgetAfterReboot. */
  isSweptAfterReboot?: true
  /** Remedy for an unreadable record, unless its file is to be moved away by hand. */
  remedy?(owner: Owner): string
}

/** Each takes some 2 KB. */
const MAX_REMEMBERED_RECORDS = 500

const MOVE_RECORD_AWAY_REMEDY = 'move the file away where nothing of it is needed any more'

/** A record exists whose content is not reliable: a group id with one flipped bit is still a valid group id. */
export class DamagedRecord extends Refusal {}

/** Result of reading a record. Neither property is set if no record exists. */
export interface RecordReadResult<T> {
  record?: T
  /** Reason why this version cannot use the record. */
  problem?: DamagedRecord | UnknownFormatRefusal
}

interface RecordWriteOptions {
  path?: string
  durability?: ReplacementDurability
}

/** Reads and writes one kind of record. */
export class RecordKind<T extends object, Owner = string> {
  readonly #form: RecordKindDefinition<T, Owner>
  /** Records that were intact, by path: a worker that stays reads those of the node's other mounts at each mount. */
  readonly #intact = new Map<string, { text: string; record: T }>()
  #schema: z.ZodMiniType<T> | undefined

  constructor(form: RecordKindDefinition<T, Owner>) {
    this.#form = form
  }

  /**
   * Reads a record; returns undefined if none exists.
   * @throws {UnknownFormatRefusal} if another version of modekeep wrote it
   * @throws {DamagedRecord}
   */
  read(store: Store, owner: Owner): T | undefined {
    const { record, problem } = this.find(store, owner)
    if (problem !== undefined) throw problem
    return record
  }

  /** Reads a record, for callers that treat a damaged one as if none existed. @throws {UnknownFormatRefusal} */
  readUnlessDamaged(store: Store, owner: Owner): T | undefined {
    const { record, problem } = this.find(store, owner)
    if (problem instanceof UnknownFormatRefusal) throw problem
    return record
  }

  find(store: Store, owner: Owner): RecordReadResult<T> {
    const path = this.#form.locate(store, owner)
    const text = store.host.files.read(path)
    if (text === undefined || (isUnwrittenRecord(text) && this.#mayNeverHaveBeenWritten(store))) return {}
    const known = this.#intact.get(path)
    if (known?.text === text) return { record: known.record }
    const result = this.parse(path, owner, text)
    if (result.record !== undefined) {
      if (this.#intact.size >= MAX_REMEMBERED_RECORDS) this.#intact.clear()
      this.#intact.set(path, { text, record: result.record })
    }
    return result
  }

  /** @param text of the file at `path` */
  parse(path: string, owner: Owner, text: string): RecordReadResult<T> {
    const { format, ownerOf } = this.#form
    const { sum, ...record } = parseRecord(text)
    const remedy = this.#form.remedy?.(owner) ?? MOVE_RECORD_AWAY_REMEDY
    // The format is checked first, because another version may compute another checksum.
    if (Number.isInteger(record.format) && record.format !== format) {
      return {
        problem: new UnknownFormatRefusal(
          createFault(
            'format-unknown',
            `the record ${path} cannot be used (its format is ${record.format}, this version reads ${format})`,
            `install the version of modekeep that made it, or ${remedy}`,
          ),
        ),
      }
    }
    this.#schema ??= this.#form.schema()
    const { success, data } = z.safeParse(this.#schema, record)
    const isIntact =
      record.format === format && success && sum === computeRecordChecksum(record) && ownerOf(data) === owner
    if (isIntact) return { record: data }
    const message = `the record ${path} is damaged or is of something else: repair the disk, and ${remedy}`
    return { problem: new DamagedRecord(createFault('record-damaged', message)) }
  }

  /** The node may have crashed before the data of an empty record reached the disk. */
  #mayNeverHaveBeenWritten(store: Store): boolean {
    const { isOfThisBoot, isSweptAfterReboot } = this.#form
    return isSweptAfterReboot ? !isSweptSinceBoot(store) : isOfThisBoot !== undefined
  }

  /** Returns whether a record exists, readable or not. */
  has(store: Store, owner: Owner): boolean {
    const [directory, name] = splitFilePath(this.#form.locate(store, owner))
    return store.host.files.list(directory).includes(name)
  }

  /**
   * Writes a record with its format and checksum: atomically, and durably unless it is needless after a reboot.
   * @param path of its file, in a staging directory that will become the owner's directory
   * @param durability `none` only for a kind that may have unwritten records
   */
  write(
    store: Store,
    record: T,
    { path = this.#form.locate(store, this.#form.ownerOf(record)), durability = 'full' }: RecordWriteOptions = {},
  ): void {
    const { files } = store.host
    const text = this.serialize(record)
    retryWhileRemoved(() => {
      files.makeDirectory(splitFilePath(path)[0])
      if (durability === 'none' || this.#form.isOfThisBoot?.(record, store)) files.replaceUntilBoot(path, text)
      else if (durability === 'content') files.replaceUntilDirectorySync(path, text)
      else files.replace(path, text)
    })
  }

  /** Returns the text of the record's file. */
  serialize(record: T): string {
    const formatted = { format: this.#form.format, ...record }
    return `${JSON.stringify({ ...formatted, sum: computeRecordChecksum(formatted) })}\n`
  }

  /** Writes a text from `serialize`, durably. */
  recover(store: Store, owner: Owner, text: string): void {
    store.host.files.replace(this.#form.locate(store, owner), text)
  }

  remove(store: Store, owner: Owner): void {
    store.host.files.remove(this.#form.locate(store, owner))
  }
}

/** The record of a kind. */
export type RecordOfKind<Kind> = Kind extends { read(store: Store, owner: never): infer T } ? NonNullable<T> : never

function splitFilePath(path: string): [directory: string, name: string] {
  const slash = path.lastIndexOf('/')
  return [path.slice(0, slash), path.slice(slash + 1)]
}

/** Returns whether an error reports a record that this version cannot use. */
export function isUnreadableRecordError(error: unknown): error is DamagedRecord | UnknownFormatRefusal {
  return error instanceof DamagedRecord || error instanceof UnknownFormatRefusal
}

const isUnwrittenRecord = (text: string) => /^\0*$/.test(text)

function parseRecord(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function computeRecordChecksum(record: object): number {
  return computeCrc32([Buffer.from(JSON.stringify(record))])
}
