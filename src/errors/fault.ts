import type { FaultCode } from './entries/index.ts'
import { escapeUnprintable } from './escape.ts'

/** The subject of a fault. Each protocol has its own word for it. */
export type FaultSubject = 'option' | 'annotation'

/**
 * A fault as data. `reason` is a predicate of an option, or else a complete clause. Texts may contain
 * `OPTION_TERM_PLACEHOLDER` and `SECRET_REF_PLACEHOLDER`, because each protocol has its own terms for them.
 */
export interface Fault {
  readonly code: FaultCode
  readonly subject?: FaultSubject
  /** Name of the option or the annotation. */
  readonly key?: string
  /** The value that was given, as the message shows it. */
  readonly value?: string
  readonly reason: string
  /** Explains the reason, or quotes the program or the kernel that reported it. */
  readonly cause?: string
  readonly remedy?: string
}

/**
 * Stand for terms that differ between FlexVolume and CSI, and are replaced when a fault is rendered. They are private use
 * characters, which `quoteValue` escapes, so a user's value is never replaced.
 */
export const OPTION_TERM_PLACEHOLDER = '\u{e000}'
export const SECRET_REF_PLACEHOLDER = '\u{e001}'

/** The words of a door: of kubelet's FlexVolume calls, of CSI. */
export interface ProtocolTerms {
  readonly option: string
  readonly secretRef: string
}

export const FLEXVOLUME_TERMS: ProtocolTerms = { option: 'option', secretRef: 'secretRef' }
export const CSI_TERMS: ProtocolTerms = { option: 'volumeAttributes', secretRef: 'nodePublishSecretRef' }

export function createFault(code: FaultCode, reason: string, remedy?: string, cause?: string): Fault {
  return { code, reason, ...(cause !== undefined && { cause }), ...(remedy !== undefined && { remedy }) }
}

/** @param reason the predicate without the remedy: `is "a"` */
export function createOptionFault(
  code: FaultCode,
  key: string,
  reason: string,
  remedy?: string,
  cause?: string,
): Fault {
  return { ...createFault(code, reason, remedy, cause), subject: 'option', key }
}

/** @param reason the complete clause, which begins with the annotation or with what the pod has in its place */
export function createAnnotationFault(code: FaultCode, reason: string, remedy?: string): Fault {
  return { ...createFault(code, reason, remedy), subject: 'annotation' }
}

/** Puts text before a fault. The fault's own subject becomes a part of the reason. */
export function prefixFault({ subject, key, ...fault }: Fault, prefix: string): Fault {
  const own = renderFaultSubject(
    { ...fault, ...(subject && { subject }), ...(key !== undefined && { key }) },
    OPTION_TERM_PLACEHOLDER,
  )
  return { ...fault, reason: `${prefix}${own}${fault.reason}` }
}

/** @param annotation text of the annotation, with which the fault begins unless it is about an annotation already */
export function attributeFaultToAnnotation(fault: Fault, annotation: string): Fault {
  if (fault.subject === 'annotation') return fault
  return { ...prefixFault(fault, `${annotation}, but `), subject: 'annotation' }
}

/** Renders a fault as one sentence in the words of a door: `option "a" is "b": use one of c, d`. */
export function renderFault(fault: Fault, words: ProtocolTerms = FLEXVOLUME_TERMS): string {
  const { reason, cause, remedy } = fault
  const rest = [cause, remedy].filter((text) => text !== undefined).join('; ')
  const sentence = `${renderFaultSubject(fault, words.option)}${rest === '' ? reason : `${reason}: ${rest}`}`
  const translated = sentence.replaceAll(OPTION_TERM_PLACEHOLDER, words.option)
  return shortenFaultText(escapeUnprintable(translated.replaceAll(SECRET_REF_PLACEHOLDER, words.secretRef)))
}

function renderFaultSubject({ subject, key = '' }: Fault, optionWord: string): string {
  if (subject === 'option') {
    // Kubelet's own keys are options of a FlexVolume call at each door.
    const word = key.startsWith('kubernetes.io/') ? FLEXVOLUME_TERMS.option : optionWord
    return `${word} ${JSON.stringify(key)} `
  }
  return ''
}

// The subject of a fault is at its start and the remedy at its end, so the middle is left out.
const MAX_FAULT_CHARACTERS = 2000
const KEPT_FAULT_CHARACTERS = { start: 1300, end: 600 }

/** Bounds the length of a fault, which may quote text of a pod's author, a helper or another process. */
function shortenFaultText(text: string): string {
  if (text.length <= MAX_FAULT_CHARACTERS) return text
  const left = text.length - KEPT_FAULT_CHARACTERS.start - KEPT_FAULT_CHARACTERS.end
  return `${text.substring(0, KEPT_FAULT_CHARACTERS.start)}… (${left} characters left out) …${text.substring(text.length - KEPT_FAULT_CHARACTERS.end)}`
}

// An event holds 1,024 bytes of a message; a pod's status holds the complete message.
const MAX_RENDERED_FAULTS = 8
const MAX_FAULT_MESSAGE_CHARACTERS = 4000

/** Renders as many faults as fit into a message, but at least the first, and counts the others. */
export function renderFaults(faults: readonly Fault[], words: ProtocolTerms = FLEXVOLUME_TERMS): string {
  const texts = faults.map((fault) => renderFault(fault, words))
  let length = 0
  const tooMany = texts.findIndex((text, at) => {
    length += text.length
    return at === MAX_RENDERED_FAULTS || (at > 0 && length > MAX_FAULT_MESSAGE_CHARACTERS)
  })
  if (tooMany < 0) return texts.join('; ')
  return `${texts.slice(0, tooMany).join('; ')}; and ${texts.length - tooMany} more`
}

/** Formats a code as the end of a message. */
export const formatFaultCode = (code: FaultCode) => ` [${code}]`

/** Formats a reason that may have a code. */
export function formatReasonWithCode({ reason, code }: { reason: string; code?: FaultCode | null }): string {
  return code ? `${reason}${formatFaultCode(code)}` : reason
}

const MAX_RENDERED_CODES = 4

/** Renders the codes of faults as the end of a message: ` [option-unknown]`. docs/troubleshooting.md describes each. */
export function renderFaultCodes(faults: readonly Fault[]): string {
  const codes = [...new Set(faults.map(({ code }) => code))]
  return codes.length === 0 ? '' : ` [${codes.slice(0, MAX_RENDERED_CODES).join(', ')}]`
}
