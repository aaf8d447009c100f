export type Entry = { path: string } & (
  | { bytes: Uint8Array; mode: number }
  | { link: string }
  | { directory: true; mode: number }
)

const BLOCK = 512

/**
 * A tar archive (ustar) of root's entries in the order given, all of the epoch's first second: the same entries are
 * always the same bytes.
 * @throws {Error} for a path that the format has no room for
 */
export function tar(entries: readonly Entry[]): Buffer {
  return Buffer.concat([...entries.flatMap(blocks), Buffer.alloc(2 * BLOCK)])
}

function blocks(entry: Entry): Uint8Array[] {
  if ('link' in entry) return [header(entry.path, { type: '2', mode: 0o777, size: 0, link: entry.link })]
  if ('directory' in entry) return [header(`${entry.path}/`, { type: '5', mode: entry.mode, size: 0 })]
  const { path, bytes, mode } = entry
  return [header(path, { type: '0', mode, size: bytes.length }), bytes, Buffer.alloc(-bytes.length & (BLOCK - 1))]
}

interface Facts {
  type: '0' | '2' | '5'
  mode: number
  size: number
  link?: string
}

// name 100, mode 8, uid 8, gid 8, size 12, mtime 12, checksum 8, type 1, link name 100, magic and version 8.
function header(path: string, { type, mode, size, link = '' }: Facts): Buffer {
  if (Buffer.byteLength(path) > 100 || Buffer.byteLength(link) > 100) throw new Error(`too long for a tar: ${path}`)
  const block = Buffer.alloc(BLOCK)
  block.write(path, 0)
  for (const [at, value] of [
    [100, mode],
    [108, 0],
    [116, 0],
  ] as const)
    block.write(octal(value, 7), at)
  block.write(octal(size, 11), 124)
  block.write(octal(0, 11), 136)
  block.fill(' ', 148, 156)
  block.write(type, 156)
  block.write(link, 157)
  block.write('ustar\x0000', 257, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0`, 148, 'latin1')
  return block
}

const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
