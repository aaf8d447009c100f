import * as z from 'zod/mini'
import { checksum } from '../host/checksum.ts'
import type { Host } from '../host/host.ts'
import { Refusal, UnknownFormat } from '../refusal/refusal.ts'

/** How one kind of record is written. Its format is in the file, and changes whenever an older version would misread it. */
export interface RecordForm<T> {
  format: number
  schema: z.ZodMiniType<T>
}

/** A record is there, and nobody can tell what it said: a group with one bit turned over is a group like any other. */
export class DamagedRecord extends Refusal {}

export function damagedRecord(path: string): DamagedRecord {
  return new DamagedRecord(
    `the record ${path} is damaged or is of something else: repair the disk, and move the file away where nothing of it is needed any more`,
  )
}

/**
 * A record as it was written; undefined where there is none.
 * @throws {UnknownFormat} where another version of modekeep has written it
 * @throws {DamagedRecord}
 */
export function readRecord<T>(host: Host, path: string, { format, schema }: RecordForm<T>): T | undefined {
  const text = host.files.read(path)
  if (text === undefined) return undefined
  const { sum, ...record } = parsed(text)
  // Before the checksum: that of another version may be another one.
  if (Number.isInteger(record.format) && record.format !== format) {
    throw new UnknownFormat(
      `the record ${path} cannot be used (its format is ${record.format}, this version reads ${format}): ` +
        'install the version of modekeep that made it, or move the file away where nothing of it is needed any more',
    )
  }
  const { success, data } = z.safeParse(schema, record)
  if (record.format !== format || !success || sum !== sumOf(record)) throw damagedRecord(path)
  return data
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

type Problem = DamagedRecord | UnknownFormat

/** Whether somebody found a record that says nothing to this version. */
export function isUnreadable(error: unknown): error is Problem {
  return error instanceof DamagedRecord || error instanceof UnknownFormat
}

/** Why a record says nothing; undefined where it can be read, or there is none. */
export function problemOf(read: () => unknown): Problem | undefined {
  return attempt(read, isUnreadable).problem
}

/** For those who can go on without what a damaged record said, as if there were none. */
export function unlessDamaged<T>(read: () => T | undefined): T | undefined {
  return attempt(read, (error) => error instanceof DamagedRecord).record
}

/** For those who only tell what can be read. */
export function unlessUnreadable<T>(read: () => T | undefined): T | undefined {
  return attempt(read, isUnreadable).record
}

function attempt<T>(read: () => T | undefined, isExpected: (error: unknown) => boolean) {
  try {
    return { record: read(), problem: undefined }
  } catch (error) {
    if (!isExpected(error)) throw error
    return { record: undefined, problem: error as Problem }
  }
}

/** Atomic and durable, with format and checksum; its directory must be there. */
export function writeRecord<T extends object>(host: Host, path: string, { format }: RecordForm<T>, record: T): void {
  const whole = { format, ...record }
  host.files.replace(path, `${JSON.stringify({ ...whole, sum: sumOf(whole) })}\n`)
}

function sumOf(record: object): number {
  return checksum([Buffer.from(JSON.stringify(record))])
}
