import { DT, dynamicValue, dynamicValues, fileOffset, readSegments, readString, type Segment } from './elf.ts'

export interface VersionNeed {
  /** Where the file keeps the offset of the library's name. */
  nameAt: number
  soname: string
  versions: string[]
}

/** Elf64_Verneed and its Elf64_Vernaux chain: what is asked of each library. */
export function versionNeeds(elf: Buffer, segments: Segment[]): VersionNeed[] {
  const strings = fileOffset(segments, dynamicValue(elf, segments, DT.STRTAB))
  const needs: VersionNeed[] = []
  let at = fileOffset(segments, dynamicValue(elf, segments, DT.VERNEED))
  for (;;) {
    const versions: string[] = []
    let version = at + elf.readUInt32LE(at + 8)
    for (let left = elf.readUInt16LE(at + 2); left > 0; left--) {
      versions.push(readString(elf, strings + elf.readUInt32LE(version + 8)))
      version += elf.readUInt32LE(version + 12)
    }
    needs.push({ nameAt: at + 4, soname: readString(elf, strings + elf.readUInt32LE(at + 4)), versions })
    const next = elf.readUInt32LE(at + 12)
    if (next === 0) return needs
    at += next
  }
}

/** Names of glibc's that are no numbers, by the version that has them first. */
const GLIBC_ABI: Readonly<Record<string, string>> = { ABI_DT_RELR: '2.36' }

/** The newest version of glibc that one of these files asks for, such as `2.28`. */
export function newestGlibc(files: readonly Buffer[]): string {
  const names = files.flatMap((elf) => versionNeeds(elf, readSegments(elf)).flatMap(({ versions }) => versions))
  const versions = names.flatMap((name) => /^GLIBC_(.*)$/.exec(name)?.[1] ?? []).map((name) => GLIBC_ABI[name] ?? name)
  return versions.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1) ?? ''
}

/**
 * Makes ld.so read a library's name from another place of the running image: it adds the offset to the string table's
 * address and never looks at the table's size. The carried libraries stay as they are, they find each other by SONAME.
 */
export function renameNeeded(elf: Buffer, segments: Segment[], addressOf: ReadonlyMap<string, number>): void {
  const table = dynamicValue(elf, segments, DT.STRTAB)
  const strings = fileOffset(segments, table)
  const needs = versionNeeds(elf, segments)
  const dynamic = dynamicValues(elf, segments, DT.NEEDED)
  for (const [soname, address] of addressOf) {
    const entry = dynamic.find((at) => readString(elf, strings + Number(elf.readBigUInt64LE(at))) === soname)
    if (entry === undefined) throw new Error(`Node does not need ${soname}; drop it from the carried libraries`)
    elf.writeBigUInt64LE(BigInt(address - table), entry)
    for (const need of needs.filter((need) => need.soname === soname)) elf.writeUInt32LE(address - table, need.nameAt)
  }
}
