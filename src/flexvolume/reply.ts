import { escapeUnprintable } from '../errors/escape.ts'
import { createFault, type FaultWords, FLEXVOLUME_WORDS, renderCodes, renderFaults } from '../errors/fault.ts'
import { formatError, Refusal } from '../errors/refusal.ts'

/** Value of `volume.capabilities`. Kubelet takes missing fields as true (flexvolume/driver-call.go). */
export interface Capabilities {
  attach: false
  fsGroup: false
  selinuxRelabel: boolean
  supportsMetrics: boolean
  requiresFSResize: false
}

export type FlexVolumeReply =
  | { status: 'Success'; message?: string; capabilities?: Capabilities }
  | { status: 'Failure'; message: string }
  | { status: 'Not supported'; message: string }

/** Converts an error into the reply. */
export function createFailureReply(error: unknown): FlexVolumeReply {
  return { status: 'Failure', message: createFailureMessage(error, FLEXVOLUME_WORDS) }
}

/**
 * Converts an error into the message of a pod's event, which ends with the codes of its faults. Errors other than a Refusal are faults
 * of modekeep or of the system.
 */
export function createFailureMessage(error: unknown, words: FaultWords): string {
  if (error instanceof Refusal) return truncateMessage(renderFaults(error.faults, words), renderCodes(error.faults))
  const end = `; see its log on the node${renderCodes([createFault('internal', '')])}`
  return `modekeep failed: ${truncateMessage(formatError(error))}${end}`
}

// An event's message holds 1,024 bytes (kubernetes pkg/apis/core/validation/events.go), kubelet's own words included.
const MAX_MESSAGE_BYTES = 850

/**
 * Shortens a message to an event's size, without characters that a terminal could interpret.
 * @param end text that is kept at the end
 */
export function truncateMessage(message: string, end = ''): string {
  const text = escapeUnprintable(message)
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_MESSAGE_BYTES) return `${text}${end}`
  // A truncated character decodes to U+FFFD.
  const start = bytes.toString('utf8', 0, MAX_MESSAGE_BYTES).replace(/\ufffd$/, '')
  return `${start}… (the node's modekeep log has more of it)${end}`
}

/** Formats one JSON document and a newline, because kubelet parses stdout and stderr together as one document. */
export function formatReplyLine(reply: FlexVolumeReply): string {
  return `${JSON.stringify(reply)}\n`
}
