import * as z from 'zod/mini'
import { checksum } from '../host/checksum.ts'
import type { Host } from '../host/host.ts'

/**
 * A record as it was written; undefined when there is none, or what is there cannot be understood or is damaged: a group
 * with one bit turned over is a group like any other.
 */
export function readRecord<T>(host: Host, path: string, schema: z.ZodMiniType<T>): T | undefined {
  const text = host.files.read(path)
  if (text === undefined) return undefined
  try {
    const { sum, ...record } = JSON.parse(text)
    const { success, data } = z.safeParse(schema, record)
    return success && sum === sumOf(record) ? data : undefined
  } catch {
    return undefined
  }
}

/** Atomic and durable, with a checksum; its directory must be there. */
export function writeRecord(host: Host, path: string, record: object): void {
  host.files.replace(path, `${JSON.stringify({ ...record, sum: sumOf(record) })}\n`)
}

function sumOf(record: object): number {
  return checksum([Buffer.from(JSON.stringify(record))])
}
