import { pathSizeFaults } from '../path/input-sizes.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'

export type FlexVolumeCall =
  | { verb: 'init' }
  | { verb: 'mount'; directory: string; options: string }
  | { verb: 'unmount'; directory: string }
  | { verb: 'other'; name: string }

/** What kubelet may call (kubernetes pkg/volume/flexvolume/driver-call.go). */
const KUBELET_VERBS: ReadonlySet<string> = new Set(
  `init mount unmount getvolumename attach waitforattach isattached detach mountdevice unmountdevice
   expandvolume expandfs`.split(/\s+/),
)

/** Whether a first argument is one of kubelet's verbs, which are answered in its protocol. */
export const isKubeletVerb = (verb = ''): boolean => KUBELET_VERBS.has(verb)

/** As kubelet gives them (kubernetes pkg/volume/flexvolume/driver-call.go). */
const ARGUMENTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['init', []],
  ['mount', ['DIR', 'JSON']],
  ['unmount', ['DIR']],
])

/**
 * Reads kubelet's arguments.
 * @throws {Refusal} for a known verb with missing or extra arguments, or an unusable directory
 */
export function parseCall([verb = '', ...given]: readonly string[]): FlexVolumeCall {
  const names = ARGUMENTS.get(verb)
  if (names === undefined) return { verb: 'other', name: verb }
  if (given.length !== names.length) {
    const wanted = [verb, ...names].join(' ')
    throw new Refusal(`${verb} takes ${names.length} argument(s), got ${given.length}: call it as "${wanted}"`)
  }
  if (verb === 'init') return { verb }
  const [path = '', options = ''] = given
  const directory = parseMountDirectory(path)
  return verb === 'mount' ? { verb, directory, options } : { verb: 'unmount', directory }
}

/** A directory as kubelet names one, made normal. @throws {Refusal} */
export function parseMountDirectory(path: string): string {
  const tooLong = pathSizeFaults('mount directory', path)
  if (tooLong.length > 0) throw new Refusal(tooLong)
  const parts = path.split('/')
  const reasons = [
    path.startsWith('/') || 'an absolute path is needed',
    // Node decodes argv as UTF-8; U+FFFD is what an undecodable byte became, so the real name is lost.
    !path.includes('\ufffd') || 'it is not valid UTF-8',
    !parts.includes('..') || 'it must not contain ".."',
  ]
  const reason = reasons.find((one) => one !== true)
  if (reason)
    throw new Refusal(`mount directory ${quoted(path)}: ${reason}; kubelet passes <its root>/pods/<uid>/volumes/…`)
  return `/${parts.filter((part) => part !== '' && part !== '.').join('/')}`
}
