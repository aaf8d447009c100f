import { isOwnedByRootOrSelf } from './path-handle.ts'
import { type NodeFsModule, readBoundedFile } from './read-file.ts'
import { SystemError } from './system-error.ts'

/** Texts by path, each with the version of the file that had it: a worker that stays reads the same files at each mount. */
export type KnownTexts = Map<string, { readonly version: string; readonly text: string }>

/** The largest record is that of a heal of a node with thousands of mounts: a few MiB. */
const MAX_OWN_FILE_BYTES = 1 << 26
const MAX_KNOWN_TEXTS = 500
const MAX_KNOWN_TEXT_LENGTH = 1 << 14
/** The clock of file times advances every 10 ms at most: within them, a second change may leave the same times. */
const SETTLED_AFTER_MS = 100n
/** Some file systems keep whole seconds (ext4 with inodes of 128 bytes), or even ones. */
const SETTLED_IN_SECONDS_AFTER_MS = 2100n
const SECOND_NS = 1_000_000_000n
// For a missing file, an error would take far longer than the call.
const STAT_OPTIONS = { bigint: true, throwIfNoEntry: false } as const

/**
 * Reads a file of modekeep. A text that is known is returned again as long as its file is the same and was not changed.
 * @returns undefined if the file does not exist
 * @throws {SystemError} EPERM for a file of a user other than root; EISDIR; EFBIG above 64 MiB
 */
export function readOwnFile(fs: NodeFsModule, path: string, known: KnownTexts): string | undefined {
  const before = fs.statSync(path, STAT_OPTIONS)
  if (before === undefined) return undefined
  if (before.isDirectory()) throw new SystemError('read', 'EISDIR', path)
  const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = before
  const version = [dev, ino, size, mtimeNs, ctimeNs].join()
  const remembered = known.get(path)
  if (remembered?.version === version) return remembered.text
  const { text, stat } = readBoundedFile(fs, path, MAX_OWN_FILE_BYTES)
  if (!isOwnedByRootOrSelf(stat)) throw new SystemError('read', 'EPERM', path, 'it belongs to another user than root')
  // If the file has changed since `before`, its version is another one from now on.
  const settledAfterMs = ctimeNs % SECOND_NS === 0n ? SETTLED_IN_SECONDS_AFTER_MS : SETTLED_AFTER_MS
  if (BigInt(Date.now()) - ctimeMs > settledAfterMs && text.length <= MAX_KNOWN_TEXT_LENGTH) {
    if (known.size >= MAX_KNOWN_TEXTS) known.clear()
    known.set(path, { version, text })
  }
  return text
}
