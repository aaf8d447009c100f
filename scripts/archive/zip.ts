import { inflateRawSync } from 'node:zlib'

const END_SIGNATURE = Buffer.from('PK\x05\x06', 'latin1')
const ENTRY_SIGNATURE = Buffer.from('PK\x01\x02', 'latin1').readUInt32LE()
const ENTRY_HEADER_BYTES = 46
const LOCAL_HEADER_BYTES = 30
const METHOD_STORED = 0
const METHOD_DEFLATED = 8

/**
 * Returns the content of one file of a zip archive. Archives above 4 GB are not supported.
 * @throws {Error} if the archive has no such file, or is damaged
 */
export function readZipFile(archive: Buffer, path: string): Buffer {
  const end = archive.lastIndexOf(END_SIGNATURE)
  if (end < 0) throw new Error('zip archive has no directory: the file is incomplete or of another format')
  const count = archive.readUInt16LE(end + 10)
  let at = archive.readUInt32LE(end + 16)
  for (let index = 0; index < count && archive.readUInt32LE(at) === ENTRY_SIGNATURE; index++) {
    const nameLength = archive.readUInt16LE(at + 28)
    const name = archive.toString('utf8', at + ENTRY_HEADER_BYTES, at + ENTRY_HEADER_BYTES + nameLength)
    if (name === path) return readEntry(archive, at, path)
    at += ENTRY_HEADER_BYTES + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
  }
  throw new Error(`zip archive has no file ${path}`)
}

function readEntry(archive: Buffer, at: number, path: string): Buffer {
  const method = archive.readUInt16LE(at + 10)
  const sizeBytes = archive.readUInt32LE(at + 20)
  const local = archive.readUInt32LE(at + 42)
  // The local header has its own extra fields.
  const start = local + LOCAL_HEADER_BYTES + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
  const bytes = archive.subarray(start, start + sizeBytes)
  if (method === METHOD_STORED) return bytes
  if (method === METHOD_DEFLATED) return inflateRawSync(bytes)
  throw new Error(`zip archive has ${path} in compression method ${method}: only stored and deflated are supported`)
}
