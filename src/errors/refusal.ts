import type { FaultCode } from './entries/index.ts'
import { escapeJson } from './escape.ts'
import { createFault, type Fault, renderFaults } from './fault.ts'

/**
 * An error that is written for people. `faults` lists every fault of a call, so that a pod's author can correct all of them at once.
 * The message has FlexVolume's words; each door renders the faults in its own.
 */
export class Refusal extends Error {
  readonly faults: readonly Fault[]

  constructor(faults: Fault | readonly Fault[], options?: ErrorOptions) {
    const list = 'code' in faults ? [faults] : faults
    super(renderFaults(list), options)
    this.name = 'Refusal'
    this.faults = list
  }

  /** Creates a refusal with one fault. */
  static of(code: FaultCode, reason: string, remedy?: string, cause?: string): Refusal {
    return new Refusal(createFault(code, reason, remedy, cause))
  }
}

/** Reports a file in the format of another version of modekeep. The file is not changed: that version can still read it. */
export class UnknownFormatRefusal extends Refusal {}

const MAX_QUOTED_CHARACTERS = 120

/**
 * Formats a value for a message: as JSON, with unprintable characters escaped, and truncated to a length that fits into an event.
 * A text is truncated before it is escaped, so a long text of a pod's author costs no time.
 */
export function quoteValue(value: unknown): string {
  if (typeof value === 'string' && value.length > MAX_QUOTED_CHARACTERS) {
    return truncateQuotedText(
      escapeJson(JSON.stringify(value.slice(0, MAX_QUOTED_CHARACTERS))),
      value.length + '""'.length,
    )
  }
  const text = escapeJson(JSON.stringify(value) ?? String(value))
  return text.length > MAX_QUOTED_CHARACTERS ? truncateQuotedText(text, text.length) : text
}

function truncateQuotedText(text: string, length: number): string {
  // Half of a surrogate pair is not a character.
  const shown = text.slice(0, MAX_QUOTED_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
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
export function unwrapSuppressedError(error: unknown): unknown {
  return error instanceof SuppressedError ? unwrapSuppressedError(error.suppressed) : error
}

/** Formats any thrown value as text. */
export function formatError(error: unknown): string {
  const first = unwrapSuppressedError(error)
  return first instanceof Error ? first.message : String(first)
}

/** Returns the code of an error's first fault; undefined for an error that is no refusal. */
export function findFaultCode(error: unknown): FaultCode | undefined {
  return error instanceof Refusal ? error.faults[0]?.code : undefined
}
