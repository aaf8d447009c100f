import { jsonText } from '../refusal/printable.ts'

/** Bytes of a line with its newline. */
const LONGEST_LINE = 4096

/** Of a stack only where it was thrown is of use: its message is in the line already. */
const LONGEST_STACK = 512

/** Tried in turn: bytes that are kept of each text in a line that would be too long. */
const KEPT = [2048, 1024, 512, 256, 128, 64, 32]

/** How many bytes are kept of a text for each thing that is kept of a list. */
const BYTES_PER_ITEM = 32

/**
 * An entry of the log as a line of JSON, without its newline: of at most 4 KiB, as others choose what much of it says. What
 * was cut is counted where it was, and in `cut`, in bytes.
 */
export function logLine(entry: Readonly<Record<string, unknown>>): string {
  const whole = jsonText(JSON.stringify(entry))
  const size = Buffer.byteLength(whole)
  if (size < LONGEST_LINE) return whole
  for (const kept of KEPT) {
    const shortened = Object.entries(entry).map(([key, value]) => [
      key,
      cutTo(value, key === 'stack' ? Math.min(kept, LONGEST_STACK) : kept),
    ])
    const line = withCut(Object.fromEntries(shortened), size)
    if (Buffer.byteLength(line) < LONGEST_LINE) return line
  }
  // Many facts, each of them short.
  return withCut(
    Object.fromEntries(
      Object.entries(entry)
        .slice(0, KEPT.length)
        .map(([key, value]) => [key, cutTo(value, 32)]),
    ),
    size,
  )
}

function withCut(entry: Readonly<Record<string, unknown>>, size: number): string {
  return jsonText(JSON.stringify({ ...entry, cut: size - Buffer.byteLength(jsonText(JSON.stringify(entry))) }))
}

function cutTo(value: unknown, kept: number): unknown {
  if (typeof value === 'string') return cutText(value, kept)
  if (typeof value !== 'object' || value === null) return value
  const most = Math.ceil(kept / BYTES_PER_ITEM)
  if (Array.isArray(value)) {
    const items = value.slice(0, most).map((item) => cutTo(item, kept))
    return value.length > most ? [...items, `… (${value.length - most} more)`] : items
  }
  const all = Object.entries(value)
  const facts = all.slice(0, most).map(([key, item]) => [cutText(key, kept), cutTo(item, kept)])
  return Object.fromEntries(all.length > most ? [...facts, ['…', `${all.length - most} more`]] : facts)
}

function cutText(text: string, kept: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= kept) return text
  // A character cut in two decodes to U+FFFD.
  return `${bytes.toString('utf8', 0, kept).replace(/\ufffd$/, '')}… (${bytes.length - kept} bytes cut)`
}
