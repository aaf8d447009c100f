/** A file of an archive. Its directories come of themselves. */
export interface Entry {
  /** Relative, with `/`. */
  path: string
  bytes: Buffer
  isProgram?: boolean
}

const BLOCK = 512
const DIRECTORY = '5'
const REGULAR = '0'

/**
 * A tar archive (POSIX ustar) whose bytes depend on nothing but what is given: entries sorted by name, root's, 0755 or
 * 0644, all of one time.
 * @param time in seconds since 1970
 */
export function tarOf(entries: readonly Entry[], time: number): Buffer {
  const directories = [...new Set(entries.flatMap(({ path }) => directoriesOf(path)))]
  const members = [
    ...directories.map((path) => ({ path, bytes: Buffer.alloc(0), type: DIRECTORY, mode: 0o755 })),
    ...entries.map(({ path, bytes, isProgram }) => ({ path, bytes, type: REGULAR, mode: isProgram ? 0o755 : 0o644 })),
  ].sort((one, other) => (one.path < other.path ? -1 : 1))
  const blocks = members.flatMap(({ bytes, ...about }) => [
    header({ ...about, size: bytes.length, time }),
    bytes,
    Buffer.alloc(-bytes.length & (BLOCK - 1)),
  ])
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function directoriesOf(path: string): string[] {
  return [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index + 1))
}

interface Header {
  path: string
  type: string
  mode: number
  size: number
  time: number
}

function header({ path, type, mode, size, time }: Header): Buffer {
  const [prefix, name] = split(path)
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  block.write(name, 0)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(time, 136, 12)
  block.write(`        ${type}`, 148)
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

const LONGEST_NAME = 100
const LONGEST_PREFIX = 155

function split(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= LONGEST_NAME) return ['', path]
  const at = path.indexOf('/', path.length - LONGEST_NAME - 1)
  if (at < 0 || at > LONGEST_PREFIX || Buffer.byteLength(path) !== path.length) {
    throw new Error(`${path} is too long a name for a tar archive`)
  }
  return [path.slice(0, at), path.slice(at + 1)]
}
