import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'

/** A record as it was written; undefined when there is none, or what is there cannot be understood. */
export function readRecord<T>(host: Host, path: string, schema: z.ZodMiniType<T>): T | undefined {
  const text = host.files.read(path)
  if (text === undefined) return undefined
  try {
    const result = z.safeParse(schema, JSON.parse(text))
    return result.success ? result.data : undefined
  } catch {
    return undefined
  }
}
