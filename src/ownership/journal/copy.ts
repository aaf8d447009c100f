import type { DatabaseSync } from 'node:sqlite'
import type { Host } from '../../host/host.ts'
import { AclTable } from './acl-table.ts'
import { explaining, prepare } from './checks.ts'
import { type Quota, Room } from './room.ts'
import { Log, release, roomFor, roomForAcl, transaction } from './tables.ts'

/** Room of one transaction: a sync of the disk for each row would take long, and all at once twice the room. */
const AT_ONCE = 4 << 20

/** What a journal consists of: an ACL, or a batch of records. ACLs come first, as records refer to them. */
export interface Row {
  kind: 'acl' | 'batch'
  number: bigint
  sum: bigint
  bytes: Uint8Array
}

/** What a journal holds at one moment, row by row. A walk may be writing to it meanwhile. */
export class JournalSnapshot {
  readonly #database: DatabaseSync
  readonly #log: Log
  readonly #acls: AclTable
  readonly #path: string
  /** The numbers of unsettled batches, ascending. */
  readonly unsettled: readonly bigint[]
  /** What the volume lay on; undefined where that was never noted. */
  readonly disk: string | undefined
  /** How many there are of each kind of row, and the bytes of all together. */
  readonly acls: number
  readonly batches: number
  readonly bytes: number

  /** @throws {Refusal} as `Journal.openForReading`, which has the same parameters */
  constructor(host: Host, path: string, volume: string, known: boolean) {
    this.#path = path
    this.#database = this.#guard(() => host.openDatabase(path))
    const sql = this.#database.createTagStore()
    this.#log = new Log(sql, volume)
    this.#acls = new AclTable(sql, volume)
    const { unsettled, disk } = this.#guard(() => prepare(this.#database, sql, { path, volume, known, reading: true }))
    this.unsettled = [...unsettled].sort((one, other) => (one < other ? -1 : 1))
    this.disk = disk
    this.acls = this.#guard(() => this.#acls.count())
    this.batches = this.#guard(() => this.#log.count())
    this.bytes = this.#guard(() => this.#acls.size() + this.#log.size())
  }

  /**
   * ACLs in the order of their hashes, then batches in theirs. The bytes of each are there until the next is asked for.
   * @throws {Refusal} where one is not as it was written
   */
  *rows(): Generator<Row> {
    const rows = this.#all()
    for (;;) {
      const { value, done } = this.#guard(() => rows.next())
      if (done) return
      yield value
      release(value.bytes)
    }
  }

  *#all(): Generator<Row> {
    for (const { number, sum, acl } of this.#acls.all()) yield { kind: 'acl', number, sum, bytes: acl }
    for (const { number, sum, records } of this.#log.all()) yield { kind: 'batch', number, sum, bytes: records }
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }

  #guard<T>(work: () => T): T {
    return explaining(this.#path, work)
  }
}

/** What a new journal is made of. */
export interface JournalCopy {
  /** Several are kept until they are written. */
  rows: Iterable<Row>
  unsettled: readonly bigint[]
  /** What the volume lies on here. */
  disk: string | undefined
}

/**
 * Makes the journal that another one was, in a file that nobody else knows of yet. It gives way to other events.
 * @throws {Refusal} where the disk or the quota is full
 */
export async function writeJournal(
  host: Host,
  path: string,
  volume: string,
  { rows, unsettled, disk }: JournalCopy,
  quota: Quota,
): Promise<void> {
  const guard = <T>(work: () => T) => explaining(path, work)
  const database = guard(() => host.openDatabase(path))
  const sql = database.createTagStore()
  guard(() => prepare(database, sql, { path, volume, known: false, reading: false, disk }))
  try {
    const [log, acls, room] = [new Log(sql, volume), new AclTable(sql, volume), new Room(database)]
    guard(() => room.limitTo(quota))
    const insert = ({ kind, number, sum, bytes }: Row) =>
      kind === 'acl' ? acls.insert({ number, sum, acl: bytes }) : log.insert({ number, sum, records: bytes })
    const write = (needed: number, work: () => void) => guard(() => room.for(needed, () => transaction(database, work)))
    for (const some of inParts(rows)) {
      write(roomOf(some), () => some.forEach(insert))
      await new Promise((resolve) => setImmediate(resolve))
    }
    write(roomFor([]), () => {
      for (const batch of unsettled) sql.run`INSERT INTO unsettled VALUES (${batch})`
    })
  } finally {
    guard(() => database.close())
  }
}

function* inParts(rows: Iterable<Row>): Generator<Row[]> {
  let [part, room]: [Row[], number] = [[], 0]
  for (const row of rows) {
    part.push(row)
    room += roomOf([row])
    if (room < AT_ONCE) continue
    yield part
    ;[part, room] = [[], 0]
  }
  if (part.length > 0) yield part
}

/** The most bytes that rows add to a database's file. */
function roomOf(rows: readonly Row[]): number {
  const of = (wanted: Row['kind']) => rows.filter(({ kind }) => kind === wanted).map(({ bytes }) => bytes)
  return of('acl').reduce((sum, acl) => sum + roomForAcl(acl), roomFor(of('batch')))
}
