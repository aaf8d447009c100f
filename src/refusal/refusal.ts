import { jsonText, printable } from './printable.ts'

/**
 * The one error a person is meant to read: what is wrong, with which key and value, and the way out.
 * Every fault of a call is in `faults`, each of at most some 2,000 characters, so that a pod's author corrects all of them at once.
 */
export class Refusal extends Error {
  readonly faults: readonly string[]

  constructor(faults: string | readonly string[], options?: ErrorOptions) {
    const list = (typeof faults === 'string' ? [faults] : faults).map((fault) => shortened(printable(fault)))
    super(joined(list), options)
    this.name = 'Refusal'
    this.faults = list
  }
}

// A fault ends with the way out: what it is about is in its middle.
const LONGEST_FAULT = 2000
const SHOWN = { start: 1300, end: 600 }

/** Whatever a pod's author, a helper or another process had a fault say. */
function shortened(fault: string): string {
  if (fault.length <= LONGEST_FAULT) return fault
  const left = fault.length - SHOWN.start - SHOWN.end
  return `${fault.slice(0, SHOWN.start)}… (${left} characters left out) …${fault.slice(-SHOWN.end)}`
}

/** Another version of modekeep has written what a call needs. It stays as it is: that version can still read it. */
export class UnknownFormat extends Refusal {}

// An event holds 1,024 bytes, and a pod's status all of it.
const MOST_FAULTS = 8
const LONGEST_MESSAGE = 4000

/** As many faults as a message has room for, the first one in any case. */
function joined(faults: readonly string[]): string {
  let length = 0
  const tooMany = faults.findIndex((fault, at) => {
    length += fault.length
    return at === MOST_FAULTS || (at > 0 && length > LONGEST_MESSAGE)
  })
  if (tooMany < 0) return faults.join('; ')
  return `${faults.slice(0, tooMany).join('; ')}; and ${faults.length - tooMany} more`
}

const LONGEST_SHOWN = 120

/**
 * A value as a message shows it: quoted, with what does not print escaped, cut to a length an event can hold. How long a text is
 * counts for nothing: a pod's author may have written it.
 */
export function quoted(value: unknown): string {
  if (typeof value === 'string' && value.length > LONGEST_SHOWN) {
    return cut(jsonText(JSON.stringify(value.slice(0, LONGEST_SHOWN))), value.length + '""'.length)
  }
  const text = jsonText(JSON.stringify(value) ?? String(value))
  return text.length > LONGEST_SHOWN ? cut(text, text.length) : text
}

function cut(text: string, length: number): string {
  // Half of a surrogate pair is no character.
  const shown = text.slice(0, LONGEST_SHOWN).replace(/[\ud800-\udbff]$/, '')
  return `${shown}… (${length} characters)`
}

/** What a check would say if it refused; undefined where it lets pass. */
export function refusalOf(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}

/** What was thrown first, where what cleaned up after it has failed too. */
export function thrownFirst(error: unknown): unknown {
  return error instanceof SuppressedError ? thrownFirst(error.suppressed) : error
}

/** What anything that was thrown says. */
export function messageOf(error: unknown): string {
  const first = thrownFirst(error)
  return first instanceof Error ? first.message : String(first)
}
