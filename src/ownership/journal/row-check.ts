import { hashAcl, isAclNumber } from './acl-table.ts'
import { Checksums } from './checksums.ts'
import { createView, decodeRecord, findRecordStarts, isForgotten } from './codec.ts'
import type { JournalRow } from './copy.ts'

/** Linux's limit of an extended attribute, XATTR_SIZE_MAX. */
const MAX_ACL_BYTES = 65_536
/** Stands in for every ACL when a record is decoded. */
const PLACEHOLDER_ACL = new Uint8Array()

/** Verifies imported rows in order, against the checksums of this volume's journal. */
export class RowChecker {
  readonly #checksums: Checksums
  /** Four bytes for each ACL, because the numbers in an imported file can be arbitrarily large. */
  readonly #numbers: Uint32Array
  #aclCount = 0
  #lastHash = ''
  #lastBatch: Pick<JournalRow, 'number' | 'sum'> | undefined

  /** @param acls number of ACLs; all come before the first batch */
  constructor(volume: string, acls: number) {
    this.#checksums = new Checksums(volume)
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
    const chunk = createView(bytes)
    const acls = { get: (number: number) => this.#findAcl(number) }
    for (const at of findRecordStarts(chunk)) if (!isForgotten(chunk, at)) decodeRecord({ chunk, at }, true, acls)
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
