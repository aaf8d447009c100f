import { computeCrc32 } from '../../src/kernel/crc32.ts'

/** A record as it lies in its file, with a checksum that is right. */
export function addChecksum(record: object): string {
  const text = JSON.stringify(record)
  return JSON.stringify({ ...JSON.parse(text), sum: computeCrc32([Buffer.from(text)]) })
}
