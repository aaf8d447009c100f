import { Refusal } from './refusal.ts'

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
  if (error instanceof Refusal) return { status: 'Failure', message: error.message }
  const text = error instanceof Error ? error.message : String(error)
  return { status: 'Failure', message: `modekeep failed: ${text}; see its log on the node` }
}

/** One JSON document and a newline: kubelet parses stdout and stderr together as one document. */
export function replyLine(reply: Reply): string {
  return `${JSON.stringify(reply)}\n`
}
