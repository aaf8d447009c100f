import { resolve } from 'node:path'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { deferHandleClose, getErrno } from '../../kernel/host.ts'
import { createPathLookups } from '../../kernel/mount-table/responsiveness.ts'
import { listReadableMountRecords } from '../../state/mount-record.ts'
import { listVolumesWithRecords, type Store } from '../../state/record-directories.ts'
import type { Session } from '../../state/session.ts'
import { isVolumeId } from '../../state/volume-id.ts'
import { volumeRecords } from '../../state/volume-record.ts'
import { isVolumeIdPrefix, type OptionName, trimEllipsis } from './options.ts'
import type { VerbArguments } from './verb.ts'

/** A directory, or a volume by its recorded name. */
export type ResolvedTarget = { directory: string } | { volume: string }

/**
 * A target as the operator writes it. `beginning` may be the beginning of a volume's name.
 * @property directory the alternative: a path from the working directory; undefined: only a volume's name is possible
 */
export type TargetOperand = ResolvedTarget | { beginning: string; directory: string | undefined }

/** Lists every volume with a record or a recorded mount on this node. */
export function listRecordedVolumes(store: Store): string[] {
  const mounted = listReadableMountRecords(store).flatMap(({ volume }) => volume ?? [])
  return [...new Set([...listVolumesWithRecords(store), ...mounted])].sort()
}

/**
 * Returns the one volume whose name equals, or begins with, the word; undefined if there is none.
 * @throws {Refusal} with the candidates, if there are several
 */
export function resolveVolumeName(session: Session, word: string, volumes: readonly string[]): string | undefined {
  if (volumes.includes(word)) return word
  const candidates = volumes.filter((volume) => volume.startsWith(word))
  if (candidates.length <= 1) return candidates[0]
  throw Refusal.of(
    'usage',
    `${quoteValue(word)} is the beginning of ${candidates.length} volumes`,
    `write more of the name of ${formatVolumeCandidates(session, candidates)}`,
  )
}

const MAX_LISTED_CANDIDATES = 10

function formatVolumeCandidates(session: Session, volumes: readonly string[]): string {
  const shown = volumes.slice(0, MAX_LISTED_CANDIDATES).map((volume) => {
    const source = volumeRecords.readUnlessDamaged(session, volume)?.source
    return source === undefined ? volume : `${volume} (${source})`
  })
  const more = volumes.length > MAX_LISTED_CANDIDATES ? ` or ${volumes.length - MAX_LISTED_CANDIDATES} others` : ''
  return shown.join(', ') + more
}

/**
 * Decides whether the operator named a volume or a directory.
 * @throws {Refusal} if both are possible
 */
export async function resolveTargetOperand(session: Session, target: TargetOperand): Promise<ResolvedTarget> {
  if (!('beginning' in target)) return target
  const { beginning, directory } = target
  const volumes = listRecordedVolumes(session)
  // A complete volume name wins over a directory of the same name.
  if (volumes.includes(beginning)) return { volume: beginning }
  const hasCandidates = volumes.some((volume) => volume.startsWith(beginning))
  if (!hasCandidates) return directory === undefined ? { volume: beginning } : { directory }
  if (directory !== undefined && (await isExistingPath(session, directory))) {
    throw Refusal.of(
      'usage',
      `${quoteValue(beginning)} is a directory here, and the beginning of a volume's name`,
      `write "./${beginning}", or the whole name`,
    )
  }
  return { volume: resolveVolumeName(session, beginning, volumes) ?? beginning }
}

async function isExistingPath(session: Session, path: string): Promise<boolean> {
  try {
    const handle = await createPathLookups(session).open(path)
    using _ = deferHandleClose(session.host.inodes, handle)
    // A path whose lookup is unresponsive does not count, as nothing could be restored there.
    return handle !== undefined
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return getErrno(error) !== 'ENOENT'
  }
}

/** Reads the one directory that a verb takes, as an absolute, normalized path. */
export function readDirectoryOperand(verb: string, { words, workingDirectory, faults, refuse }: VerbArguments): string {
  const wrong = explainInvalidDirectory(verb, words)
  if (wrong !== undefined) refuse(...wrong)
  return faults.length > 0 ? '' : resolve(makePathAbsolute(words[0] ?? '', workingDirectory))
}

/** Reads a volume by its name or the beginning of it, or a directory like `readDirectoryOperand`. */
export function readTargetOperand(verb: string, args: VerbArguments): TargetOperand {
  const word = trimEllipsis(args.words[0] ?? '')
  const isOne = args.words.length === 1
  // A complete volume name is never taken for a directory.
  if (isOne && isVolumeId(word)) return { beginning: word, directory: undefined }
  const directory = readDirectoryOperand(verb, args)
  return isOne && isVolumeIdPrefix(word) ? { beginning: word, directory } : { directory }
}

/** Reads the one file that a verb takes, as an absolute path that is not normalized. */
export function readFileOperand(verb: string, { words, workingDirectory, faults, refuse }: VerbArguments): string {
  const [file = '', ...more] = words
  if (file === '' || more.length > 0) {
    refuse(`${verb} takes one file, got ${file === '' ? 'none' : quoteValue(words)}`, `name one`)
  } else if (/[\0\ufffd]/.test(file)) {
    refuse(`file ${quoteValue(file)} is not valid UTF-8`, `give it another name`)
  }
  return faults.length > 0 ? '' : makePathAbsolute(file, workingDirectory)
}

function explainInvalidDirectory(
  verb: string,
  [directory = '', ...more]: readonly string[],
): [reason: string, remedy: string] | undefined {
  if (directory === '' || more.length > 0) {
    const got = directory === '' ? 'none' : quoteValue([directory, ...more])
    return [`${verb} takes one directory, got ${got}`, 'name one']
  }
  // Node decodes argv as UTF-8, so the original bytes are lost.
  if (/[\0\ufffd]/.test(directory)) {
    return [`directory ${quoteValue(directory)} is not valid UTF-8`, 'reach it by another name, such as a bind mount']
  }
  // After a symbolic link, ".." is not the parent that the text names.
  if (/(^|\/)(?!\.\.?(\/|$))[^/]+(\/+\.)*\/+\.\.(\/|$)/.test(directory)) {
    return [`directory ${quoteValue(directory)} goes down and up again`, 'write it without ".."']
  }
  return undefined
}

/** Reads an option's path as an absolute path. It is not normalized, because ".." after a link is not its textual parent. */
export function readPathOption(name: OptionName, { given, workingDirectory }: VerbArguments): string | undefined {
  const path = given.get(name)
  return path && makePathAbsolute(path, workingDirectory)
}

function makePathAbsolute(path: string, workingDirectory: () => string): string {
  return path.startsWith('/') ? path : `${workingDirectory()}/${path}`
}

/** Reads kubelet's directory of pods and sockets; the default is that of kubelet's --root-dir. */
export function readKubeletDirectory({ given }: VerbArguments): string {
  return resolve(given.get('kubelet-dir') ?? '/var/lib/kubelet')
}

/** Returns the member of `candidates` that was probably meant; undefined if none is close. */
export function findNearestSpelling(word: string, candidates: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3))
  const close = candidates
    .map((candidate) => ({ candidate, distance: computeEditDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .sort((one, other) => one.distance - other.distance)
  if (close[0]) return close[0].candidate
  const longer = candidates.filter((candidate) => word.length >= 2 && candidate.startsWith(word))
  return longer.length === 1 ? longer[0] : undefined
}

/** Counts insertions, deletions, replacements and swaps of adjacent letters (optimal string alignment). */
function computeEditDistance(one: string, other: string): number {
  // Distances between the first i letters of `one` and the first j of `other`; the first row and column count letters.
  const table = Array.from({ length: one.length + 1 }, (_, i) =>
    Array.from({ length: other.length + 1 }, (_, j) => i + j),
  )
  const at = (i: number, j: number) => table[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (const [i, row] of table.entries()) {
    for (let j = 1; i > 0 && j < row.length; j++) {
      const isSwapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const replaced = at(i - 1, j - 1) + (one[i - 1] === other[j - 1] ? 0 : 1)
      row[j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, isSwapped ? at(i - 2, j - 2) + 1 : replaced)
    }
  }
  return at(one.length, other.length)
}
