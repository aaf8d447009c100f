import { escapeJson, escapeUnprintable } from './escape.ts'

/**
 * An error whose message is written for people: it names the fault, the key, the value and the remedy.
 * `faults` lists every fault of a call, so that a pod's author can correct all of them at once. Each has about 2,000
 * characters at most.
 */
export class Refusal extends Error {
  readonly faults: readonly string[]

  constructor(faults: string | readonly string[], options?: ErrorOptions) {
    const list = (typeof faults === 'string' ? [faults] : faults).map((fault) => shortenFault(escapeUnprintable(fault)))
    super(joinFaults(list), options)
    this.name = 'Refusal'
    this.faults = list
  }
}

// The subject of a fault is at its start and the remedy at its end, so the middle is left out.
const MAX_FAULT_CHARACTERS = 2000
const KEPT_CHARACTERS = { start: 1300, end: 600 }

/** Bounds the length of a fault, which may quote text of a pod's author, a helper or another process. */
function shortenFault(fault: string): string {
  if (fault.length <= MAX_FAULT_CHARACTERS) return fault
  const left = fault.length - KEPT_CHARACTERS.start - KEPT_CHARACTERS.end
  return `${fault.slice(0, KEPT_CHARACTERS.start)}… (${left} characters left out) …${fault.slice(-KEPT_CHARACTERS.end)}`
}

/** Reports a file in the format of another version of modekeep. The file is not changed: that version can still read it. */
export class UnknownFormat extends Refusal {}

// An event holds 1,024 bytes of a message; a pod's status holds the complete message.
const MAX_FAULTS = 8
const MAX_MESSAGE_CHARACTERS = 4000

/** Joins as many faults as fit into a message, but at least the first, and counts the others. */
function joinFaults(faults: readonly string[]): string {
  let length = 0
  const tooMany = faults.findIndex((fault, at) => {
    length += fault.length
    return at === MAX_FAULTS || (at > 0 && length > MAX_MESSAGE_CHARACTERS)
  })
  if (tooMany < 0) return faults.join('; ')
  return `${faults.slice(0, tooMany).join('; ')}; and ${faults.length - tooMany} more`
}

const MAX_VALUE_CHARACTERS = 120

/**
 * Formats a value for a message: as JSON, with unprintable characters escaped, and truncated to a length that fits into an event.
 * A text is truncated before it is escaped, so a long text of a pod's author costs no time.
 */
export function quoted(value: unknown): string {
  if (typeof value === 'string' && value.length > MAX_VALUE_CHARACTERS) {
    return truncateValue(escapeJson(JSON.stringify(value.slice(0, MAX_VALUE_CHARACTERS))), value.length + '""'.length)
  }
  const text = escapeJson(JSON.stringify(value) ?? String(value))
  return text.length > MAX_VALUE_CHARACTERS ? truncateValue(text, text.length) : text
}

function truncateValue(text: string, length: number): string {
  // Half of a surrogate pair is not a character.
  const shown = text.slice(0, MAX_VALUE_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
  return `${shown}… (${length} characters)`
}

/** Returns the message of the refusal that a check throws, or undefined if the check passes. */
export function catchRefusalMessage(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}

/** Returns the first error if the cleanup after it failed too: a SuppressedError then holds both. */
export function findFirstError(error: unknown): unknown {
  return error instanceof SuppressedError ? findFirstError(error.suppressed) : error
}

/** Formats any thrown value as text. */
export function formatError(error: unknown): string {
  const first = findFirstError(error)
  return first instanceof Error ? first.message : String(first)
}
