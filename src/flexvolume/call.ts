import { quoted, Refusal } from '../errors/refusal.ts'
import { checkPathSize } from '../path/input-sizes.ts'

export type FlexVolumeCall =
  | { verb: 'init' }
  | { verb: 'mount'; directory: string; options: string }
  | { verb: 'unmount'; directory: string }
  | { verb: 'other'; name: string }

/** Verbs that kubelet may call (kubernetes pkg/volume/flexvolume/driver-call.go). */
const KUBELET_VERBS: ReadonlySet<string> = new Set(
  `init mount unmount getvolumename attach waitforattach isattached detach mountdevice unmountdevice
   expandvolume expandfs`.split(/\s+/),
)

/** Returns whether an argument is one of kubelet's verbs, which are answered in kubelet's protocol. */
export const isKubeletVerb = (verb = ''): boolean => KUBELET_VERBS.has(verb)

/** Arguments of the supported verbs (kubernetes pkg/volume/flexvolume/driver-call.go). */
const ARGUMENTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['init', []],
  ['mount', ['DIR', 'JSON']],
  ['unmount', ['DIR']],
])

/**
 * Parses kubelet's arguments.
 * @throws {Refusal} for a known verb with missing or extra arguments, or an unusable directory
 */
export function parseCall([verb = '', ...values]: readonly string[]): FlexVolumeCall {
  const names = ARGUMENTS.get(verb)
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
      `mount directory ${quoted(path)}`,
      undefined,
      `${reason}; kubelet passes <its root>/pods/<uid>/volumes/…`,
    )
  return `/${parts.filter((part) => part !== '' && part !== '.').join('/')}`
}
