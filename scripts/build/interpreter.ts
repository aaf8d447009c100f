import { ELF_SEGMENT_TYPES, readElfSegments } from './elf.ts'

/** Files that ld.so reads at its start: libraries to load into every process of the node, and where the node's libraries are. */
const NODE_LISTS = ['/etc/ld.so.preload', '/etc/ld.so.cache']

/** The table of directories in which ld.so searches for a library by name, each with a zero. */
const SYSTEM_DIRECTORIES = /(?<=\0)(?:\/(?:usr\/)?lib(?:64)?\/(?:[\w-]+\/)?\0)+/g

/**
 * Changes the paths in ld.so by which it would load the node's libraries, which belong to another C library: its lists become
 * empty strings, and the directories such as `/---/`, which no node has. All sizes stay.
 * @throws {Error} if a path is missing, as another ld.so may have other ones
 */
export function hideNodeLibraries(interpreter: Buffer): Buffer {
  assertStartsAtZero(interpreter)
  let text = interpreter.toString('latin1')
  for (const path of NODE_LISTS) text = replacePath(text, `\0${path}\0`, '\0'.repeat(path.length + 2))
  // ld.so aborts if one does not begin with a slash.
  const hide = (table: string) => table.replace(/[^\0]+/g, ({ length }) => `/${'-'.repeat(length - 2)}/`)
  const hidden = text.replace(SYSTEM_DIRECTORIES, hide)
  if (hidden === text) throw new Error('ld.so does not contain its system directories')
  return Buffer.from(hidden, 'latin1')
}

function replacePath(text: string, path: string, by: string): string {
  if (!text.includes(path)) throw new Error(`ld.so does not contain ${path.replaceAll('\0', '')}`)
  return text.replaceAll(path, by)
}

/** The loader maps it from this address on. */
function assertStartsAtZero(interpreter: Buffer): void {
  const first = readElfSegments(interpreter).find(({ type }) => type === ELF_SEGMENT_TYPES.LOAD)
  if (first?.address !== 0 || first.offset !== 0) throw new Error('ld.so does not start at address 0')
}
