import type { DatabaseSync } from 'node:sqlite'
import type { Host } from '../../kernel/host.ts'
import { AclTable, hashAcl, isAclNumber } from './acl-table.ts'
import { createDataView, decodeRecord } from './codec.ts'
import { closeIfFailed, explainJournalErrors, prepareJournalTables } from './database.ts'
import { findRecordStarts, isForgottenInodeRecord } from './layout.ts'
import { estimateAclGrowth, estimateLogGrowth, type JournalQuota, JournalSizeLimiter } from './quota.ts'
import { freeBuffer, JournalChecksums, RecordLog, runTransaction } from './tables.ts'

/**
 * Bytes of one transaction. A disk sync for each row takes long, and one transaction for all rows needs twice the
 * space.
 */
const COPY_TRANSACTION_BYTES = 4 << 20

/** A row of a journal: an ACL, or a batch of records. ACLs come first, because records refer to them. */
export interface JournalRow {
  kind: 'acl' | 'batch'
  number: bigint
  sum: bigint
  bytes: Uint8Array
}

/** The rows of a journal at one moment. A walk may write to the journal concurrently. */
export class JournalSnapshot {
  readonly #database: DatabaseSync
  readonly #log: RecordLog
  readonly #acls: AclTable
  readonly #path: string
  /** Numbers of the unsettled batches, ascending. */
  readonly unsettled: readonly bigint[]
  /** The last recorded disk of the volume; undefined: none was recorded. */
  readonly disk: string | undefined
  /** Number of rows of each kind, and the bytes of all rows. */
  readonly acls: number
  readonly batches: number
  readonly bytes: number

  /** @throws {Refusal} as `Journal.openForReading`, which has the same parameters */
  constructor(host: Host, path: string, volume: string, wasWalked: boolean) {
    this.#path = path
    this.#database = this.#guard(() => host.openDatabase(path, 'existing'))
    const sql = this.#database.createTagStore()
    this.#log = new RecordLog(sql, volume)
    this.#acls = new AclTable(sql, volume)
    const { unsettled, disk } = this.#guard(() =>
      prepareJournalTables(this.#database, sql, { path, volume, wasWalked, isReadOnly: true }),
    )
    this.unsettled = [...unsettled].sort((one, other) => (one < other ? -1 : 1))
    this.disk = disk
    const countRows = () => ({
      acls: this.#acls.count(),
      batches: this.#log.count(),
      bytes: this.#acls.size() + this.#log.size(),
    })
    const { acls, batches, bytes } = this.#guard(() => closeIfFailed(this.#database, countRows))
    this.acls = acls
    this.batches = batches
    this.bytes = bytes
  }

  /**
   * ACLs in the order of their hashes, then batches in order of their numbers. The bytes of a row are valid until the
   * next row is requested.
   * @throws {Refusal} if a row differs from what was written
   */
  *rows(): Generator<JournalRow> {
    const rows = this.#readAll()
    for (;;) {
      const { value, done } = this.#guard(() => rows.next())
      if (done) return
      yield value
      freeBuffer(value.bytes)
    }
  }

  *#readAll(): Generator<JournalRow> {
    for (const { number, sum, acl } of this.#acls.readAll()) yield { kind: 'acl', number, sum, bytes: acl }
    for (const { number, sum, records } of this.#log.readAll()) yield { kind: 'batch', number, sum, bytes: records }
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }

  #guard<T>(operation: () => T): T {
    return explainJournalErrors(this.#path, operation)
  }
}

/** Content of a new journal. */
export interface JournalCopy {
  /** Several rows are kept in memory until they are written. */
  rows: Iterable<JournalRow>
  unsettled: readonly bigint[]
  /** Identity of the disk that the volume is on at this node. */
  disk: string | undefined
}

/**
 * Writes a copy of a journal to a new file, which no other process uses yet. It yields between transactions.
 * @throws {Refusal} if the disk is full or the quota is reached
 */
export async function writeJournalCopy(
  host: Host,
  path: string,
  volume: string,
  { rows, unsettled, disk }: JournalCopy,
  quota: JournalQuota,
): Promise<void> {
  const guard = <T>(operation: () => T) => explainJournalErrors(path, operation)
  const database = guard(() => host.openDatabase(path))
  const sql = database.createTagStore()
  guard(() => prepareJournalTables(database, sql, { path, volume, wasWalked: false, isReadOnly: false, disk }))
  try {
    const [log, acls, quotaFile] = [
      new RecordLog(sql, volume),
      new AclTable(sql, volume),
      new JournalSizeLimiter(database),
    ]
    guard(() => quotaFile.setQuota(quota))
    const insert = ({ kind, number, sum, bytes }: JournalRow) =>
      kind === 'acl' ? acls.insert({ number, sum, acl: bytes }) : log.insert({ number, sum, records: bytes })
    const write = (needed: number, operation: () => void) =>
      guard(() => quotaFile.runWithQuota(needed, () => runTransaction(database, operation)))
    for (const part of splitRowsIntoTransactions(rows)) {
      write(estimateDatabaseGrowth(part), () => part.forEach(insert))
      await new Promise((resolve) => setImmediate(resolve))
    }
    write(estimateLogGrowth([]), () => {
      for (const batch of unsettled) sql.run`INSERT INTO unsettled VALUES (${batch})`
    })
  } finally {
    guard(() => database.close())
  }
}

function* splitRowsIntoTransactions(rows: Iterable<JournalRow>): Generator<JournalRow[]> {
  let [part, bytes]: [JournalRow[], number] = [[], 0]
  for (const row of rows) {
    part.push(row)
    bytes += estimateDatabaseGrowth([row])
    if (bytes < COPY_TRANSACTION_BYTES) continue
    yield part
    ;[part, bytes] = [[], 0]
  }
  if (part.length > 0) yield part
}

/** Returns an upper bound of what the rows add to the database's file. */
function estimateDatabaseGrowth(rows: readonly JournalRow[]): number {
  const selectBytes = (wanted: JournalRow['kind']) =>
    rows.filter(({ kind }) => kind === wanted).map(({ bytes }) => bytes)
  return selectBytes('acl').reduce((sum, acl) => sum + estimateAclGrowth(acl), estimateLogGrowth(selectBytes('batch')))
}

/** Linux's limit of an extended attribute, XATTR_SIZE_MAX. */
const MAX_ACL_BYTES = 65_536
/** Stands in for every ACL when a record is decoded. */
const PLACEHOLDER_ACL = new Uint8Array()

/** Verifies imported rows in order, against the checksums of this volume's journal. */
export class JournalRowChecker {
  readonly #checksums: JournalChecksums
  /** Four bytes for each ACL, because the numbers in an imported file can be arbitrarily large. */
  readonly #numbers: Uint32Array
  #aclCount = 0
  #lastHash = ''
  #lastBatch: Pick<JournalRow, 'number' | 'sum'> | undefined

  /** @param acls number of ACL records, which precede the first batch of the export */
  constructor(volume: string, acls: number) {
    this.#checksums = new JournalChecksums(volume)
    this.#numbers = new Uint32Array(acls)
  }

  /** @throws {RangeError} if the row is out of order, too large, or has an invalid record */
  checkNext(row: JournalRow): void {
    if (row.kind === 'acl') this.#checkAcl(row)
    else this.#checkBatch(row)
  }

  #checkAcl({ number, sum, bytes }: JournalRow): void {
    if (bytes.length > MAX_ACL_BYTES) throw new RangeError('an ACL is larger than any can be')
    if (!isAclNumber(number)) throw new RangeError('an ACL has no number that one can have')
    if (sum !== this.#checksums.computeAclSum(number, bytes)) throw new RangeError('an ACL has changed')
    // Hashes ascend, so a duplicate is noticed without keeping all of them.
    const hash = hashAcl(bytes)
    if (hash <= this.#lastHash) throw new RangeError('an ACL is not the next one')
    this.#lastHash = hash
    this.#numbers[this.#aclCount++] = Number(number)
    if (this.#aclCount === this.#numbers.length) this.#endAcls()
  }

  #checkBatch({ number, sum, bytes }: JournalRow): void {
    if (number <= (this.#lastBatch?.number ?? 0n) || number > Number.MAX_SAFE_INTEGER)
      throw new RangeError('a batch of records is not the next one')
    if (sum !== this.#checksums.computeBatchSum(number, bytes, this.#lastBatch?.sum))
      throw new RangeError('a batch of records has changed')
    const chunk = createDataView(bytes)
    const acls = { get: (number: number) => this.#findAcl(number) }
    for (const at of findRecordStarts(chunk))
      if (!isForgottenInodeRecord(chunk, at)) decodeRecord({ chunk, at }, true, acls)
    this.#lastBatch = { number, sum }
  }

  #endAcls(): void {
    this.#numbers.sort()
    const isTwice = this.#numbers.some((number, index, all) => index > 0 && number === all[index - 1])
    if (isTwice) throw new RangeError('two ACLs have one number')
  }

  #findAcl(number: number): Uint8Array {
    let [low, high] = [0, this.#numbers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#numbers[middle] as number) < number) low = middle + 1
      else high = middle
    }
    if (this.#numbers[low] !== number) throw new RangeError('an ACL is missing')
    return PLACEHOLDER_ACL
  }
}
