const SLASH = 0x2f
// A record and a report of every inode of a deep tree must not hold its whole path each.
const LONGEST = 1024
const CUT = Buffer.from('…')

/** The path of an entry from the volume's root, as bytes, for people: of a long one only the end. */
export function pathBelow(directory: Uint8Array, name: Uint8Array): Uint8Array {
  if (directory.length === 0) return Uint8Array.from(name)
  const path = new Uint8Array(directory.length + 1 + name.length)
  path.set(directory)
  path[directory.length] = SLASH
  path.set(name, directory.length + 1)
  if (path.length <= LONGEST) return path
  const end = path.subarray(path.length - LONGEST)
  return Buffer.concat([CUT, end.subarray(end.indexOf(SLASH))])
}
