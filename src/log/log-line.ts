import { escapeJson } from '../errors/escape.ts'

/** Limit of a line with its newline. */
const MAX_LINE_BYTES = 4096

/** Limit of a stack: only its first frames are useful, and the line contains the error's message already. */
const MAX_STACK_BYTES = 512

/** Limits of each text in a line that would be too long, tried one after the other. */
const TEXT_LIMITS_BYTES = [2048, 1024, 512, 256, 128, 64, 32]

/** A list keeps one item for each of so many bytes that a text keeps. */
const BYTES_PER_ITEM = 32

/**
 * Formats an entry of the log as a line of JSON without its newline. A line has at most 4 KiB, because pods' authors choose
 * much of its text. Each truncated text shows how many bytes were cut, and `cut` is the number for the whole line.
 */
export function formatLogLine(entry: Readonly<Record<string, unknown>>): string {
  const whole = escapeJson(JSON.stringify(entry))
  const size = Buffer.byteLength(whole)
  if (size < MAX_LINE_BYTES) return whole
  for (const kept of TEXT_LIMITS_BYTES) {
    const shortened = Object.entries(entry).map(([key, value]) => [
      key,
      truncateFact(value, key === 'stack' ? Math.min(kept, MAX_STACK_BYTES) : kept),
    ])
    const line = formatWithCut(Object.fromEntries(shortened), size)
    if (Buffer.byteLength(line) < MAX_LINE_BYTES) return line
  }
  // The entry has many short facts.
  return formatWithCut(
    Object.fromEntries(
      Object.entries(entry)
        .slice(0, TEXT_LIMITS_BYTES.length)
        .map(([key, value]) => [key, truncateFact(value, 32)]),
    ),
    size,
  )
}

function formatWithCut(entry: Readonly<Record<string, unknown>>, size: number): string {
  return escapeJson(JSON.stringify({ ...entry, cut: size - Buffer.byteLength(escapeJson(JSON.stringify(entry))) }))
}

function truncateFact(value: unknown, kept: number): unknown {
  if (typeof value === 'string') return truncateText(value, kept)
  if (typeof value !== 'object' || value === null) return value
  const most = Math.ceil(kept / BYTES_PER_ITEM)
  if (Array.isArray(value)) {
    const items = value.slice(0, most).map((item) => truncateFact(item, kept))
    return value.length > most ? [...items, `… (${value.length - most} more)`] : items
  }
  const all = Object.entries(value)
  const facts = all.slice(0, most).map(([key, item]) => [truncateText(key, kept), truncateFact(item, kept)])
  return Object.fromEntries(all.length > most ? [...facts, ['…', `${all.length - most} more`]] : facts)
}

function truncateText(text: string, kept: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= kept) return text
  // The first bytes of a truncated character decode to U+FFFD.
  return `${bytes.toString('utf8', 0, kept).replace(/\ufffd$/, '')}… (${bytes.length - kept} bytes cut)`
}
