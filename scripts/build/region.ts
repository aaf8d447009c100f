import { ELF_SEGMENT_TYPES, type ElfSegment } from './elf.ts'

/** Kernels of arm64 may use pages of 64 KiB, and offset and address of a segment must agree within a page. */
export const PAGE_BYTES = 0x10000

export const roundUpToMultiple = (value: number, step: number): number => Math.ceil(value / step) * step

/** Bytes that are appended to the file and mapped as one segment. */
export class SegmentRegion {
  readonly #chunks: Buffer[] = []
  readonly #offset: number
  readonly #address: number
  readonly #flags: number
  #size = 0

  constructor(after: { offset: number; address: number }, flags: number) {
    this.#offset = roundUpToMultiple(after.offset, PAGE_BYTES)
    this.#address = roundUpToMultiple(after.address, PAGE_BYTES)
    this.#flags = flags
  }

  /** Returns where the running program will find the bytes. */
  add(bytes: Buffer, align: number): { offset: number; address: number } {
    const start = roundUpToMultiple(this.#size, align)
    this.#chunks.push(Buffer.alloc(start - this.#size), bytes)
    this.#size = start + bytes.length
    return { offset: this.#offset + start, address: this.#address + start }
  }

  get end(): { offset: number; address: number } {
    return { offset: this.#offset + this.#size, address: this.#address + this.#size }
  }

  get segment(): ElfSegment {
    return {
      type: ELF_SEGMENT_TYPES.LOAD,
      flags: this.#flags,
      offset: this.#offset,
      address: this.#address,
      fileSize: this.#size,
      memorySize: this.#size,
      align: PAGE_BYTES,
    }
  }

  writeTo(file: Buffer): void {
    Buffer.concat(this.#chunks).copy(file, this.#offset)
  }
}
