import { hashOf, isNumber } from './acl-table.ts'
import { Checksums } from './checksums.ts'
import { decode, isForgotten, startsOf, viewOf } from './codec.ts'
import type { Row } from './copy.ts'

/** Of an extended attribute, in Linux: XATTR_SIZE_MAX. */
const LARGEST_ACL = 65_536
/** Every record that refers to an ACL is decoded with this one. */
const ACL = new Uint8Array()

/** Tells of rows that come from elsewhere whether a journal of this volume has them so, one after the other. */
export class RowCheck {
  readonly #checksums: Checksums
  /** Four bytes for each ACL, however large the numbers are that somebody has written. */
  readonly #numbers: Uint32Array
  #acls = 0
  #lastHash = ''
  #lastBatch: Pick<Row, 'number' | 'sum'> | undefined

  /** @param acls how many there are: all come before the first batch */
  constructor(volume: string, acls: number) {
    this.#checksums = new Checksums(volume)
    this.#numbers = new Uint32Array(acls)
  }

  /** @throws {RangeError} where it is not the next one, is too large, or says what is no record */
  next(row: Row): void {
    if (row.kind === 'acl') this.#nextAcl(row)
    else this.#nextBatch(row)
  }

  #nextAcl({ number, sum, bytes }: Row): void {
    if (bytes.length > LARGEST_ACL) throw new RangeError('an ACL is larger than any can be')
    if (!isNumber(number)) throw new RangeError('an ACL has no number that one can have')
    if (sum !== this.#checksums.ofAcl(number, bytes)) throw new RangeError('an ACL has changed')
    // As they are in this order, one that comes twice is seen without all others.
    const hash = hashOf(bytes)
    if (hash <= this.#lastHash) throw new RangeError('an ACL is not the next one')
    this.#lastHash = hash
    this.#numbers[this.#acls++] = Number(number)
    if (this.#acls === this.#numbers.length) this.#endAcls()
  }

  #nextBatch({ number, sum, bytes }: Row): void {
    if (number <= (this.#lastBatch?.number ?? 0n) || number > Number.MAX_SAFE_INTEGER)
      throw new RangeError('a batch of records is not the next one')
    if (sum !== this.#checksums.ofBatch(number, bytes, this.#lastBatch?.sum))
      throw new RangeError('a batch of records has changed')
    const chunk = viewOf(bytes)
    const acls = { get: (number: number) => this.#aclOf(number) }
    for (const at of startsOf(chunk)) if (!isForgotten(chunk, at)) decode({ chunk, at }, true, acls)
    this.#lastBatch = { number, sum }
  }

  #endAcls(): void {
    this.#numbers.sort()
    const isTwice = this.#numbers.some((number, index, all) => index > 0 && number === all[index - 1])
    if (isTwice) throw new RangeError('two ACLs have one number')
  }

  #aclOf(number: number): Uint8Array {
    let [low, high] = [0, this.#numbers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#numbers[middle] as number) < number) low = middle + 1
      else high = middle
    }
    if (this.#numbers[low] !== number) throw new RangeError('an ACL is missing')
    return ACL
  }
}
