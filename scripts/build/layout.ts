/** The C structures of driver/loader/loader.h. */

export const LIBRARY_SLOT_BYTES = 32
const SONAME_BYTES = 24

export interface PlacedLibrary {
  soname: string
  address: number
  size: number
}

export interface LoaderConfig {
  entry: number
  headers: number
  headerCount: number
  slots: number
  libraries: PlacedLibrary[]
  interpreter: PlacedLibrary
  kernel: PlacedLibrary
}

export function encodeLoaderConfig(config: LoaderConfig): Buffer {
  const { entry, headers, headerCount, slots, libraries, interpreter, kernel } = config
  const words = Buffer.alloc(32)
  for (const [index, value] of [entry, headers, headerCount, slots].entries())
    words.writeBigUInt64LE(BigInt(value), index * 8)
  return Buffer.concat([words, ...[...libraries, interpreter, kernel].map(encodePlacedLibrary)])
}

function encodePlacedLibrary({ soname, address, size }: PlacedLibrary): Buffer {
  if (soname.length >= SONAME_BYTES) throw new Error(`the name ${soname} is too long for the loader`)
  const bytes = Buffer.alloc(16 + SONAME_BYTES)
  bytes.writeBigUInt64LE(BigInt(address), 0)
  bytes.writeBigUInt64LE(BigInt(size), 8)
  bytes.write(soname, 16)
  return bytes
}
