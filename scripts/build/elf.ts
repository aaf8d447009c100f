/** The few parts of a 64-bit little-endian ELF file that assembling needs. Offsets are those of elf(5). */

export const ELF_SEGMENT_TYPES = { LOAD: 1, DYNAMIC: 2, INTERP: 3, NOTE: 4, PHDR: 6 } as const
export const ELF_SEGMENT_FLAGS = { X: 1, W: 2, R: 4 } as const
export const ELF_DYNAMIC_TAGS = { NEEDED: 1, STRTAB: 5, SONAME: 14, VERNEED: 0x6ffffffe } as const

const ET_EXEC = 2
const ELF_SEGMENT_BYTES = 56
const ELF_DYNAMIC_ENTRY_BYTES = 16

export interface ElfSegment {
  type: number
  flags: number
  offset: number
  address: number
  fileSize: number
  memorySize: number
  align: number
}

const readElfNumber = (bytes: Buffer, at: number) => Number(bytes.readBigUInt64LE(at))

export function assertElfProgram(elf: Buffer): void {
  const isElf64 = elf.readUInt32BE(0) === 0x7f454c46 && elf[4] === 2 && elf[5] === 1
  if (!isElf64) throw new Error('Node is not a 64-bit little-endian ELF file')
  // The loader hands ld.so absolute addresses.
  if (elf.readUInt16LE(16) !== ET_EXEC) throw new Error('Node is not linked at a fixed address (ET_EXEC)')
  if (elf.readUInt16LE(54) !== ELF_SEGMENT_BYTES) throw new Error('the program headers have an unknown size')
}

export const readElfEntryAddress = (elf: Buffer): number => readElfNumber(elf, 24)

export function writeElfEntryAddress(elf: Buffer, address: number): void {
  elf.writeBigUInt64LE(BigInt(address), 24)
}

export function removeElfSections(elf: Buffer): void {
  elf.writeBigUInt64LE(0n, 40)
  elf.fill(0, 58, 64)
}

export function readElfSegments(elf: Buffer): ElfSegment[] {
  const table = readElfNumber(elf, 32)
  return Array.from({ length: elf.readUInt16LE(56) }, (_, index) => {
    const at = table + index * ELF_SEGMENT_BYTES
    return {
      type: elf.readUInt32LE(at),
      flags: elf.readUInt32LE(at + 4),
      offset: readElfNumber(elf, at + 8),
      address: readElfNumber(elf, at + 16),
      fileSize: readElfNumber(elf, at + 32),
      memorySize: readElfNumber(elf, at + 40),
      align: readElfNumber(elf, at + 48),
    }
  })
}

export function encodeSegmentTable(segments: ElfSegment[]): Buffer {
  const table = Buffer.alloc(segments.length * ELF_SEGMENT_BYTES)
  segments.forEach((segment, index) => {
    const { type, flags, offset, address, fileSize, memorySize, align } = segment
    const at = index * ELF_SEGMENT_BYTES
    table.writeUInt32LE(type, at)
    table.writeUInt32LE(flags, at + 4)
    for (const [slot, value] of [offset, address, address, fileSize, memorySize, align].entries())
      table.writeBigUInt64LE(BigInt(value), at + 8 + slot * 8)
  })
  return table
}

export function writeElfSegments(elf: Buffer, segments: ElfSegment[]): void {
  if (segments.length > elf.readUInt16LE(56)) throw new Error('more program headers than there is room for')
  encodeSegmentTable(segments).copy(elf, readElfNumber(elf, 32))
  elf.writeUInt16LE(segments.length, 56)
}

export function findFileOffset(segments: ElfSegment[], address: number): number {
  const home = segments.find(
    (s) => s.type === ELF_SEGMENT_TYPES.LOAD && address >= s.address && address < s.address + s.fileSize,
  )
  if (!home) throw new Error(`no segment of the file holds the address 0x${address.toString(16)}`)
  return address - home.address + home.offset
}

/** The position in the file of every value with this tag. */
export function findDynamicValueOffsets(elf: Buffer, segments: ElfSegment[], tag: number): number[] {
  const dynamic = segments.find((segment) => segment.type === ELF_SEGMENT_TYPES.DYNAMIC)
  if (!dynamic) throw new Error('the file has no dynamic segment')
  const found: number[] = []
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.fileSize; at += ELF_DYNAMIC_ENTRY_BYTES)
    if (readElfNumber(elf, at) === tag) found.push(at + 8)
  return found
}

export function readDynamicValue(elf: Buffer, segments: ElfSegment[], tag: number): number {
  const [at] = findDynamicValueOffsets(elf, segments, tag)
  if (at === undefined) throw new Error(`the dynamic segment has no entry 0x${tag.toString(16)}`)
  return readElfNumber(elf, at)
}

/** The name by which other files need this library. */
export function readElfSoname(elf: Buffer): string {
  const segments = readElfSegments(elf)
  const strings = findFileOffset(segments, readDynamicValue(elf, segments, ELF_DYNAMIC_TAGS.STRTAB))
  return readElfString(elf, strings + readDynamicValue(elf, segments, ELF_DYNAMIC_TAGS.SONAME))
}

export function readElfString(elf: Buffer, at: number): string {
  return elf.toString('latin1', at, elf.indexOf(0, at))
}
