export type TarEntry = { path: string } & (
  | { bytes: Uint8Array; mode: number }
  | { link: string }
  | { directory: true; mode: number }
)

const TAR_BLOCK_BYTES = 512

/**
 * Creates a tar archive (POSIX ustar) of root's entries in the given order. Its bytes depend on nothing but the arguments.
 * @param time that all entries bear, in seconds since 1970
 * @throws {Error} for a path that the format has no room for
 */
export function createTarArchive(entries: readonly TarEntry[], time: number): Buffer {
  return Buffer.concat([...entries.flatMap((entry) => createTarBlocks(entry, time)), Buffer.alloc(2 * TAR_BLOCK_BYTES)])
}

function createTarBlocks(entry: TarEntry, time: number): Uint8Array[] {
  if ('link' in entry) return [createTarHeader(entry.path, { type: '2', mode: 0o777, size: 0, time, link: entry.link })]
  if ('directory' in entry) return [createTarHeader(`${entry.path}/`, { type: '5', mode: entry.mode, size: 0, time })]
  const { path, bytes, mode } = entry
  return [
    createTarHeader(path, { type: '0', mode, size: bytes.length, time }),
    bytes,
    Buffer.alloc(-bytes.length & (TAR_BLOCK_BYTES - 1)),
  ]
}

interface TarHeaderFields {
  type: '0' | '2' | '5'
  mode: number
  size: number
  time: number
  link?: string
}

// name 100, mode 8, uid 8, gid 8, size 12, mtime 12, checksum 8, type 1, link name 100, magic and version 8, user 32,
// group 32, device 8 and 8, prefix 155.
function createTarHeader(path: string, { type, mode, size, time, link = '' }: TarHeaderFields): Buffer {
  const [prefix, name] = splitTarPath(path)
  if (Buffer.byteLength(link) > MAX_TAR_NAME_BYTES) throw new Error(`${link} is too long for a tar archive`)
  const block = Buffer.alloc(TAR_BLOCK_BYTES)
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  block.write(name, 0)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(time, 136, 12)
  block.write(`        ${type}`, 148)
  block.write(link, 157)
  block.write('ustar\x0000', 257, 'latin1')
  block.write('root', 265)
  block.write('root', 297)
  octal(0, 329, 8)
  octal(0, 337, 8)
  block.write(prefix, 345)
  const sum = block.reduce((all, byte) => all + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}

const MAX_TAR_NAME_BYTES = 100
const MAX_TAR_PREFIX_BYTES = 155

function splitTarPath(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= MAX_TAR_NAME_BYTES) return ['', path]
  const at = path.indexOf('/', path.length - MAX_TAR_NAME_BYTES - 1)
  if (at < 0 || at === path.length - 1 || at > MAX_TAR_PREFIX_BYTES || Buffer.byteLength(path) !== path.length) {
    throw new Error(`${path} is too long for a tar archive`)
  }
  return [path.slice(0, at), path.slice(at + 1)]
}
