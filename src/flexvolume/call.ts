import { quoted, Refusal } from '../refusal/refusal.ts'

export type Call =
  | { verb: 'init' }
  | { verb: 'mount'; directory: string; options: string }
  | { verb: 'unmount'; directory: string }
  | { verb: 'other'; name: string }

/**
 * Reads kubelet's arguments (kubernetes pkg/volume/flexvolume/driver-call.go): `init`, `mount DIR JSON`, `unmount DIR`.
 * @throws {Refusal} for a known verb with missing or extra arguments, or an unusable directory
 */
export function parseCall(argv: readonly string[]): Call {
  const [verb, ...rest] = argv
  switch (verb) {
    case undefined:
      throw new Refusal('no verb was given: kubelet calls init, mount DIR JSON or unmount DIR')
    case 'init':
      expectArguments('init', [], rest)
      return { verb }
    case 'mount': {
      expectArguments('mount', ['DIR', 'JSON'], rest)
      return { verb, directory: mountDirectory(rest[0] ?? ''), options: rest[1] ?? '' }
    }
    case 'unmount':
      expectArguments('unmount', ['DIR'], rest)
      return { verb, directory: mountDirectory(rest[0] ?? '') }
    default:
      return { verb: 'other', name: verb }
  }
}

function expectArguments(verb: string, names: string[], given: string[]): void {
  if (given.length === names.length) return
  const wanted = [verb, ...names].join(' ')
  throw new Refusal(`${verb} takes ${names.length} argument(s), got ${given.length}: call it as "${wanted}"`)
}

function mountDirectory(path: string): string {
  // Node decodes argv as UTF-8; U+FFFD is what an undecodable byte became, so the real name is lost.
  const reason = !path.startsWith('/')
    ? 'an absolute path is needed'
    : path.includes('\ufffd')
      ? 'it is not valid UTF-8'
      : path.split('/').some((part) => part === '..')
        ? 'it must not contain ".."'
        : undefined
  if (reason)
    throw new Refusal(`mount directory ${quoted(path)}: ${reason}; kubelet passes <its root>/pods/<uid>/volumes/…`)
  return `/${path.split('/').filter(isRealPart).join('/')}`
}

function isRealPart(part: string): boolean {
  return part !== '' && part !== '.'
}
