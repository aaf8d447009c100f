import { errorCode } from '../../host/host.ts'

/** A directory's entry for itself. */
export const SELF = Uint8Array.of(0x2e)

const SLASH = 0x2f
// A record and a report of every inode of a deep tree must not hold its whole path each.
const LONGEST = 1024
const CUT = Buffer.from('…')

/** The path of an entry from the volume's root, as bytes, for people: of a long one only the end. */
export function pathBelow(directory: Uint8Array, name: Uint8Array): Uint8Array {
  const path = Buffer.allocUnsafe(directory.length + 1 + name.length)
  return shortened(path.subarray(0, putPath(path, 0, directory, name)))
}

/** Room that a path as of `putPath` needs; undefined: it would have to be shortened. */
export function roomFor(directory: Uint8Array, name: Uint8Array): number | undefined {
  const room = directory.length + 1 + name.length
  return room <= LONGEST ? room : undefined
}

/** Puts the whole path somewhere. @returns its length */
export function putPath(bytes: Uint8Array, at: number, directory: Uint8Array, name: Uint8Array): number {
  const start = directory.length === 0 || name.length === 0 ? directory.length : directory.length + 1
  // Short enough for loops to be quicker than calls.
  for (let index = 0; index < directory.length; index++) bytes[at + index] = directory[index] as number
  if (start > directory.length) bytes[at + directory.length] = SLASH
  for (let index = 0; index < name.length; index++) bytes[at + start + index] = name[index] as number
  return start + name.length
}

function shortened(path: Buffer): Uint8Array {
  if (path.length <= LONGEST) return path
  const end = path.subarray(path.length - LONGEST)
  return Buffer.concat([CUT, end.subarray(end.indexOf(SLASH))])
}

const VANISHED = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** The result, or undefined where the name vanished or became something else (a link: ELOOP) meanwhile. */
export function ignoreVanished<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (VANISHED.has(errorCode(error) ?? '')) return undefined
    throw error
  }
}
