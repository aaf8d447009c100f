import * as z from 'zod/mini'
import { checksum } from '../host/checksum.ts'
import { retryWhileRemoved } from '../host/retry-while-removed.ts'
import { Refusal, UnknownFormat } from '../refusal/refusal.ts'
import { type Store, volumePlace } from './places.ts'

/** How one kind of record is kept. */
interface RecordForm<T extends object, Owner> {
  /** Written in the file. It changes whenever an older version would misread it. */
  format: number
  /** Made when a record is read: most calls read few kinds. */
  schema(): z.ZodMiniType<T>
  /** The mount directory or the volume that a record speaks of; undefined: there is one for the node. */
  ownerOf(record: T): Owner
  directoryOf(store: Store, owner: Owner): string
  /** The file; `of` the owner where others' lie in the same directory. */
  name: string | { of(owner: Owner): string }
  /** What it tells of ends with the boot: nobody waits for the disk until it is written. */
  isOfThisBoot?: true
  /** What is to become of one that cannot be read, where that is not to be moved away by hand. */
  remedy?(owner: Owner): string
}

/** The owner and the place of a kind of record of which each volume has one. */
export const OF_A_VOLUME = {
  ownerOf: ({ volume }: { volume: string }) => volume,
  directoryOf: (store: Store, volume: string) => volumePlace(store, volume).path,
}

const MOVE_AWAY = 'move the file away where nothing of it is needed any more'

/** A record is there, and nobody can tell what it said: a group with one bit turned over is a group like any other. */
export class DamagedRecord extends Refusal {}

/** Neither: there is none. */
export interface Found<T> {
  record?: T
  /** Why it says nothing to this version. */
  problem?: DamagedRecord | UnknownFormat
}

/** Reads and writes one kind of record. */
export class RecordKind<T extends object, Owner = string> {
  readonly #form: RecordForm<T, Owner>
  #schema: z.ZodMiniType<T> | undefined

  constructor(form: RecordForm<T, Owner>) {
    this.#form = form
  }

  /**
   * A record as it was written; undefined where there is none.
   * @throws {UnknownFormat} where another version of modekeep has written it
   * @throws {DamagedRecord}
   */
  read(store: Store, owner: Owner): T | undefined {
    const { record, problem } = this.find(store, owner)
    if (problem !== undefined) throw problem
    return record
  }

  /** For those who can go on without what a damaged record said, as if there were none. @throws {UnknownFormat} */
  readUnlessDamaged(store: Store, owner: Owner): T | undefined {
    const { record, problem } = this.find(store, owner)
    if (problem instanceof UnknownFormat) throw problem
    return record
  }

  find(store: Store, owner: Owner): Found<T> {
    const { format, ownerOf, isOfThisBoot } = this.#form
    const path = this.#path(store, owner)
    const text = store.host.files.read(path)
    if (text === undefined || (isOfThisBoot && isUnwritten(text))) return {}
    const { sum, ...record } = parsed(text)
    const remedy = this.#form.remedy?.(owner) ?? MOVE_AWAY
    // Before the checksum: that of another version may be another one.
    if (Number.isInteger(record.format) && record.format !== format) {
      return {
        problem: new UnknownFormat(
          `the record ${path} cannot be used (its format is ${record.format}, this version reads ${format}): ` +
            `install the version of modekeep that made it, or ${remedy}`,
        ),
      }
    }
    this.#schema ??= this.#form.schema()
    const { success, data } = z.safeParse(this.#schema, record)
    const isWhole = record.format === format && success && sum === sumOf(record) && ownerOf(data) === owner
    if (isWhole) return { record: data }
    const message = `the record ${path} is damaged or is of something else: repair the disk, and ${remedy}`
    return { problem: new DamagedRecord(message) }
  }

  /** Whether there is one, also where nobody can tell what it says. */
  has(store: Store, owner: Owner): boolean {
    return store.host.files.list(this.#form.directoryOf(store, owner)).includes(this.#name(owner))
  }

  /**
   * Atomic and, unless it is of this boot only, durable, with format and checksum.
   * @param directory what is to be moved to the owner's place
   */
  write(store: Store, record: T, directory = this.#form.directoryOf(store, this.#form.ownerOf(record))): void {
    const { format, ownerOf, isOfThisBoot } = this.#form
    const { files } = store.host
    const whole = { format, ...record }
    const path = `${directory}/${this.#name(ownerOf(record))}`
    const text = `${JSON.stringify({ ...whole, sum: sumOf(whole) })}\n`
    retryWhileRemoved(() => {
      files.makeDirectory(directory)
      if (isOfThisBoot) files.replaceUntilBoot(path, text)
      else files.replace(path, text)
    })
  }

  remove(store: Store, owner: Owner): void {
    store.host.files.remove(this.#path(store, owner))
  }

  #path(store: Store, owner: Owner): string {
    return `${this.#form.directoryOf(store, owner)}/${this.#name(owner)}`
  }

  #name(owner: Owner): string {
    const { name } = this.#form
    return typeof name === 'string' ? name : name.of(owner)
  }
}

/** Whether somebody found a record that says nothing to this version. */
export function isUnreadable(error: unknown): error is DamagedRecord | UnknownFormat {
  return error instanceof DamagedRecord || error instanceof UnknownFormat
}

/** As a crash of the node leaves what was not on the disk yet: of an earlier boot then. */
const isUnwritten = (text: string) => /^\0*$/.test(text)

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function sumOf(record: object): number {
  return checksum([Buffer.from(JSON.stringify(record))])
}
