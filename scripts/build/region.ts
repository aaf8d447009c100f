import { PT, type Segment } from './elf.ts'

/** Kernels of arm64 may use pages of 64 KiB, and offset and address of a segment must agree within a page. */
export const PAGE = 0x10000

export const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step

/** Bytes that are appended to the file and mapped as one segment. */
export class Region {
  readonly #chunks: Buffer[] = []
  readonly #offset: number
  readonly #address: number
  readonly #flags: number
  #size = 0

  constructor(after: { offset: number; address: number }, flags: number) {
    this.#offset = roundUp(after.offset, PAGE)
    this.#address = roundUp(after.address, PAGE)
    this.#flags = flags
  }

  /** Returns where the running program will find the bytes. */
  add(bytes: Buffer, align: number): { offset: number; address: number } {
    const start = roundUp(this.#size, align)
    this.#chunks.push(Buffer.alloc(start - this.#size), bytes)
    this.#size = start + bytes.length
    return { offset: this.#offset + start, address: this.#address + start }
  }

  get end(): { offset: number; address: number } {
    return { offset: this.#offset + this.#size, address: this.#address + this.#size }
  }

  get segment(): Segment {
    return {
      type: PT.LOAD,
      flags: this.#flags,
      offset: this.#offset,
      address: this.#address,
      fileSize: this.#size,
      memorySize: this.#size,
      align: PAGE,
    }
  }

  writeTo(file: Buffer): void {
    Buffer.concat(this.#chunks).copy(file, this.#offset)
  }
}
