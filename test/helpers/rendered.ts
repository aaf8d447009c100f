import { type Fault, renderFault } from '../../src/errors/fault.ts'

const isFault = (value: object): value is Fault => 'code' in value && 'reason' in value

/** Replaces each fault in a value by the sentence that people read. */
export function rendered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (isFault(value)) return renderFault(value)
  if (Array.isArray(value)) return value.map(rendered)
  if (Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, rendered(part)]))
}
