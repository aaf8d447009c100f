/** The C structures of driver/loader/loader.h. */

export const SLOT_SIZE = 32
const SONAME_SIZE = 24

export interface Placed {
  soname: string
  address: number
  size: number
}

export interface Config {
  entry: number
  headers: number
  headerCount: number
  slots: number
  libraries: Placed[]
  kernel: Placed
}

export function configBytes({ entry, headers, headerCount, slots, libraries, kernel }: Config): Buffer {
  const words = Buffer.alloc(32)
  for (const [index, value] of [entry, headers, headerCount, slots].entries())
    words.writeBigUInt64LE(BigInt(value), index * 8)
  return Buffer.concat([words, ...[...libraries, kernel].map(libraryBytes)])
}

function libraryBytes({ soname, address, size }: Placed): Buffer {
  if (soname.length >= SONAME_SIZE) throw new Error(`the name ${soname} is too long for the loader`)
  const bytes = Buffer.alloc(16 + SONAME_SIZE)
  bytes.writeBigUInt64LE(BigInt(address), 0)
  bytes.writeBigUInt64LE(BigInt(size), 8)
  bytes.write(soname, 16)
  return bytes
}
