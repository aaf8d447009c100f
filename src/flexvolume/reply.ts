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

export type Reply =
  | { status: 'Success'; message?: string; capabilities?: Capabilities }
  | { status: 'Failure'; message: string }
  | { status: 'Not supported'; message: string }

/** The one place where an error becomes an answer. Anything but a Refusal is modekeep's or the system's own fault. */
export function failureReply(error: unknown): Reply {
  if (error instanceof Refusal) return { status: 'Failure', message: bounded(error.message) }
  return { status: 'Failure', message: `modekeep failed: ${bounded(messageOf(error))}; see its log on the node` }
}

// An event's message holds 1,024 bytes (kubernetes pkg/apis/core/validation/events.go), kubelet's own words included.
const LONGEST = 850

/** What an event has room for, without what could drive a terminal that shows it. */
export function bounded(message: string): string {
  const text = printable(message)
  const bytes = Buffer.from(text)
  if (bytes.length <= LONGEST) return text
  // A character cut in two decodes to U+FFFD.
  const start = bytes.toString('utf8', 0, LONGEST).replace(/\ufffd$/, '')
  return `${start}… (the node's modekeep log has more of it)`
}

/** One JSON document and a newline: kubelet parses stdout and stderr together as one document. */
export function replyLine(reply: Reply): string {
  return `${JSON.stringify(reply)}\n`
}
