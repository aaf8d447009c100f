/** One request that a disk got: data at an offset, or a flush. */
export type DiskEvent = { disk: string; offset: number; data: Buffer } | { disk: string; isFlush: true }

type DiskWrite = Extract<DiskEvent, { data: Buffer }>

/** The unflushed writes that a disk still has after a power cut. */
export type KeptWrites = 'none' | 'half' | 'all'

/** A power cut before the event with this index. */
export interface PowerCut {
  index: number
  /** By disk. */
  kept: Readonly<Record<string, KeptWrites>>
  /** Chooses the half. */
  seed: number
}

/**
 * Returns the writes that a disk has after a power cut, in their order. A flush makes all earlier writes of its disk
 * durable.
 * @param random numbers from 0 to below 1
 */
export function listDurableWrites(
  events: readonly DiskEvent[],
  disk: string,
  { index, kept }: Pick<PowerCut, 'index' | 'kept'>,
  random: () => number,
): DiskWrite[] {
  const own = events.slice(0, index).filter((event) => event.disk === disk)
  const flushed = own.findLastIndex((event) => 'isFlush' in event)
  const isKept = () => kept[disk] === 'all' || (kept[disk] === 'half' && random() < 0.5)
  return own.filter((event, at) => 'data' in event && (at < flushed || isKept())) as DiskWrite[]
}

const BLOCK_BYTES = 4096

/** A disk's content: an image that nothing changes, and later writes in memory. */
export class OverlaidDisk {
  readonly #readImage: (offset: number, length: number) => Buffer
  readonly #blocks = new Map<number, Buffer>()

  /** @param readImage returns a new buffer */
  constructor(readImage: (offset: number, length: number) => Buffer) {
    this.#readImage = readImage
  }

  /** @param data stays referenced: its bytes must not change */
  write(offset: number, data: Buffer): void {
    for (let at = 0; at < data.length; ) {
      const block = Math.floor((offset + at) / BLOCK_BYTES)
      const inBlock = (offset + at) % BLOCK_BYTES
      const part = data.subarray(at, at + BLOCK_BYTES - inBlock)
      if (part.length === BLOCK_BYTES) this.#blocks.set(block, part)
      else {
        const changed = Buffer.from(this.#readBlock(block))
        part.copy(changed, inBlock)
        this.#blocks.set(block, changed)
      }
      at += part.length
    }
  }

  read(offset: number, length: number): Buffer {
    const bytes = this.#readImage(offset, length)
    const last = Math.ceil((offset + length) / BLOCK_BYTES)
    for (let block = Math.floor(offset / BLOCK_BYTES); block < last; block++) {
      const start = block * BLOCK_BYTES - offset
      this.#blocks.get(block)?.copy(bytes, Math.max(0, start), Math.max(0, -start))
    }
    return bytes
  }

  #readBlock(block: number): Buffer {
    return this.#blocks.get(block) ?? this.#readImage(block * BLOCK_BYTES, BLOCK_BYTES)
  }
}
