import type { ConfigFile } from '../../config/read-config.ts'
import { escapeUnprintable } from '../../errors/escape.ts'
import {
  FLEXVOLUME_TERMS,
  formatFaultCode,
  type ProtocolTerms,
  renderFault,
  renderFaultCodes,
  renderFaults,
} from '../../errors/fault.ts'
import { formatError, quoteValue, Refusal, unwrapSuppressedError } from '../../errors/refusal.ts'
import { checkPathSize } from '../../kernel/path/input-sizes.ts'
import { getErrno } from '../../kernel/system-error.ts'

export type FlexVolumeCall =
  | { verb: 'init' }
  | { verb: 'mount'; directory: string; options: string }
  | { verb: 'unmount'; directory: string }
  | { verb: 'other'; name: string }

/** Verbs that kubelet may call (kubernetes pkg/volume/flexvolume/driver-call.go). */
const FLEXVOLUME_VERBS: ReadonlySet<string> = new Set(
  `init mount unmount getvolumename attach waitforattach isattached detach mountdevice unmountdevice
   expandvolume expandfs`.split(/\s+/),
)

/** Returns whether an argument is one of kubelet's verbs, which are answered in kubelet's protocol. */
export const isFlexVolumeVerb = (verb = ''): boolean => FLEXVOLUME_VERBS.has(verb)

/** Arguments of the supported verbs (kubernetes pkg/volume/flexvolume/driver-call.go). */
const FLEXVOLUME_VERB_ARGUMENTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['init', []],
  ['mount', ['DIR', 'JSON']],
  ['unmount', ['DIR']],
])

/**
 * Parses kubelet's arguments.
 * @throws {Refusal} for a known verb with missing or extra arguments, or an unusable directory
 */
export function parseFlexVolumeCall([verb = '', ...values]: readonly string[]): FlexVolumeCall {
  const names = FLEXVOLUME_VERB_ARGUMENTS.get(verb)
  if (names === undefined) return { verb: 'other', name: verb }
  if (values.length !== names.length) {
    const usage = [verb, ...names].join(' ')
    throw Refusal.of(
      'call-arguments',
      `${verb} takes ${names.length} argument(s), got ${values.length}`,
      `call it as "${usage}"`,
    )
  }
  if (verb === 'init') return { verb }
  const [path = '', options = ''] = values
  const directory = parseMountDirectory(path)
  return verb === 'mount' ? { verb, directory, options } : { verb: 'unmount', directory }
}

/** Parses and normalizes a directory of kubelet's. @throws {Refusal} if it is no absolute path without ".." */
export function parseMountDirectory(path: string): string {
  const tooLong = checkPathSize('mount directory', path)
  if (tooLong.length > 0) throw new Refusal(tooLong)
  const parts = path.split('/')
  const reasons = [
    path.startsWith('/') || 'an absolute path is needed',
    // Node decodes argv as UTF-8 and replaces invalid bytes by U+FFFD, so the real name is lost.
    !path.includes('\ufffd') || 'it is not valid UTF-8',
    !parts.includes('..') || 'it must not contain ".."',
  ]
  const reason = reasons.find((text) => text !== true)
  if (reason)
    throw Refusal.of(
      'mount-directory',
      `mount directory ${quoteValue(path)}`,
      undefined,
      `${reason}; kubelet passes <its root>/pods/<uid>/volumes/…`,
    )
  return `/${parts.filter((part) => part !== '' && part !== '.').join('/')}`
}

/** Value of `volume.capabilities`. Kubelet takes missing fields as true (flexvolume/driver-call.go). */
export interface FlexVolumeCapabilities {
  attach: false
  fsGroup: false
  selinuxRelabel: boolean
  supportsMetrics: boolean
  requiresFSResize: false
}

export type FlexVolumeReply =
  | { status: 'Success'; message?: string; capabilities?: FlexVolumeCapabilities }
  | { status: 'Failure'; message: string }
  | { status: 'Not supported'; message: string }

/**
 * Creates the reply to `init`. It succeeds even if the configuration is invalid: a driver that fails init is unknown to
 * kubelet, and the pod's author would read "no volume plugin matched" instead of the fault.
 */
export function createInitReply({ config, faults }: ConfigFile): FlexVolumeReply {
  return {
    status: 'Success',
    capabilities: { attach: false, fsGroup: false, requiresFSResize: false, ...config.capabilities },
    // Kubelet ignores the message; `install --config` reads it.
    ...(faults.length > 0 ? { message: faults.map((fault) => renderFault(fault)).join('; ') } : {}),
  }
}

/** Converts an error into the reply. */
export function createFailureReply(error: unknown): FlexVolumeReply {
  return { status: 'Failure', message: createFailureMessage(error, FLEXVOLUME_TERMS) }
}

/** modekeep runs as root, so these errors are seldom about the modes of files. */
const DENIED_ACCESS_ERRNOS: ReadonlySet<string> = new Set(['EACCES', 'EPERM'])

/**
 * Converts an error into the message of a pod's event, which ends with the codes of its faults. An error that is no
 * Refusal is unexpected, so the message refers to the log.
 */
export function createFailureMessage(error: unknown, words: ProtocolTerms): string {
  if (error instanceof Refusal)
    return truncateEventMessage(renderFaults(error.faults, words), renderFaultCodes(error.faults))
  const isDenied = DENIED_ACCESS_ERRNOS.has(getErrno(unwrapSuppressedError(error)) ?? '')
  const hint = isDenied ? 'if SELinux or AppArmor denied it, the audit log of the node says so; ' : ''
  const end = `; ${hint}see its log on the node${formatFaultCode('internal')}`
  return `modekeep failed: ${truncateEventMessage(formatError(error))}${end}`
}

// An event's message holds 1,024 bytes (kubernetes pkg/apis/core/validation/events.go), kubelet's own words included.
const MAX_EVENT_MESSAGE_BYTES = 850

/**
 * Shortens a message to an event's size, without characters that a terminal could interpret.
 * @param end text that is kept at the end
 */
export function truncateEventMessage(message: string, end = ''): string {
  const text = escapeUnprintable(message)
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_EVENT_MESSAGE_BYTES) return `${text}${end}`
  // A truncated character decodes to U+FFFD.
  const start = bytes.toString('utf8', 0, MAX_EVENT_MESSAGE_BYTES).replace(/\ufffd$/, '')
  return `${start}… (the node's modekeep log has more of it)${end}`
}

/** Formats one JSON document and a newline, because kubelet parses stdout and stderr together as one document. */
export function formatReplyLine(reply: FlexVolumeReply): string {
  return `${JSON.stringify(reply)}\n`
}
