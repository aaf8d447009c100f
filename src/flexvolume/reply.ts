import { printable } from '../refusal/printable.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'

/** What kubelet reads as `volume.capabilities`; whatever is left out it takes as true (flexvolume/driver-call.go). */
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

/** The one place where an error becomes an answer. Anything but a Refusal is modekeep's or the system's own fault. */
export function createFailureReply(error: unknown): FlexVolumeReply {
  if (error instanceof Refusal) return { status: 'Failure', message: truncateMessage(error.message) }
  return {
    status: 'Failure',
    message: `modekeep failed: ${truncateMessage(messageOf(error))}; see its log on the node`,
  }
}

// An event's message holds 1,024 bytes (kubernetes pkg/apis/core/validation/events.go), kubelet's own words included.
const MAX_MESSAGE_BYTES = 850

/** What an event has room for, without what could drive a terminal that shows it. */
export function truncateMessage(message: string): string {
  const text = printable(message)
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_MESSAGE_BYTES) return text
  // A character cut in two decodes to U+FFFD.
  const start = bytes.toString('utf8', 0, MAX_MESSAGE_BYTES).replace(/\ufffd$/, '')
  return `${start}… (the node's modekeep log has more of it)`
}

/** One JSON document and a newline: kubelet parses stdout and stderr together as one document. */
export function formatReplyLine(reply: FlexVolumeReply): string {
  return `${JSON.stringify(reply)}\n`
}
