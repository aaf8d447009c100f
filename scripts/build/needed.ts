import {
  ELF_DYNAMIC_TAGS,
  type ElfSegment,
  findDynamicValueOffsets,
  findFileOffset,
  readDynamicValue,
  readElfString,
} from './elf.ts'

export interface LibraryVersionNeed {
  /** Where the file keeps the offset of the library's name. */
  nameAt: number
  soname: string
  versions: string[]
}

/** Elf64_Verneed and its Elf64_Vernaux chain: what is asked of each library. */
export function readVersionNeeds(elf: Buffer, segments: ElfSegment[]): LibraryVersionNeed[] {
  const strings = findFileOffset(segments, readDynamicValue(elf, segments, ELF_DYNAMIC_TAGS.STRTAB))
  const needs: LibraryVersionNeed[] = []
  let at = findFileOffset(segments, readDynamicValue(elf, segments, ELF_DYNAMIC_TAGS.VERNEED))
  for (;;) {
    const versions: string[] = []
    let version = at + elf.readUInt32LE(at + 8)
    for (let left = elf.readUInt16LE(at + 2); left > 0; left--) {
      versions.push(readElfString(elf, strings + elf.readUInt32LE(version + 8)))
      version += elf.readUInt32LE(version + 12)
    }
    needs.push({ nameAt: at + 4, soname: readElfString(elf, strings + elf.readUInt32LE(at + 4)), versions })
    const next = elf.readUInt32LE(at + 12)
    if (next === 0) return needs
    at += next
  }
}

/**
 * Makes ld.so read a library's name from another place of the running image: it adds the offset to the string table's
 * address and never looks at the table's size. The carried libraries stay as they are, they find each other by SONAME.
 */
export function renameNeededLibraries(
  elf: Buffer,
  segments: ElfSegment[],
  addressOf: ReadonlyMap<string, number>,
): void {
  const table = readDynamicValue(elf, segments, ELF_DYNAMIC_TAGS.STRTAB)
  const strings = findFileOffset(segments, table)
  const needs = readVersionNeeds(elf, segments)
  const dynamic = findDynamicValueOffsets(elf, segments, ELF_DYNAMIC_TAGS.NEEDED)
  for (const [soname, address] of addressOf) {
    const entry = dynamic.find((at) => readElfString(elf, strings + Number(elf.readBigUInt64LE(at))) === soname)
    if (entry === undefined) throw new Error(`Node does not need ${soname}; drop it from the carried libraries`)
    elf.writeBigUInt64LE(BigInt(address - table), entry)
    for (const need of needs.filter((need) => need.soname === soname)) elf.writeUInt32LE(address - table, need.nameAt)
  }
}
