import { closing, errorCode } from '../../host/host.ts'
import { pathLookups } from '../../mount-table/path-lookups.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import { listMountRecords } from '../../store/mount-record.ts'
import { listVolumes, type Store } from '../../store/places.ts'
import type { Session } from '../../store/session.ts'
import { volumeRecords } from '../../store/volume-record.ts'

/** A directory, or a volume by the name that it has in the records. */
export type ResolvedTarget = { directory: string } | { volume: string }

/**
 * What a person writes for one: `beginning` may be that of a volume's name.
 * @property directory what it may be otherwise: a path from the working directory; undefined: it looks like a volume's name
 */
export type TargetOperand = ResolvedTarget | { beginning: string; directory: string | undefined }

/** A word as a table shows it that had no room for all of it. */
export function trimEllipsis(word: string): string {
  // No regular expression: the build keeps its letters beyond ASCII in bytes that the executable reads as Latin-1.
  return word.endsWith('…') ? word.slice(0, -1) : word
}

/** Whether a word may be the beginning of a volume's name (isVolumeIdentity). Never a path. */
export function isVolumePrefix(shown: string): boolean {
  const word = trimEllipsis(shown)
  return /^(t|te|tex|text|text-[0-9a-f]*|[0-9a-f.]+(-[0-9a-f]*){0,2})$/.test(word) && /[^.]/.test(word)
}

/** Every volume that this node has a record of, or a recorded mount. */
export function listRecordedVolumes(store: Store): string[] {
  const mounted = listMountRecords(store).flatMap(({ volume }) => volume ?? [])
  return [...new Set([...listVolumes(store), ...mounted])].sort()
}

/**
 * The one volume of these whose name is, or begins with, what a person wrote; undefined where there is none.
 * @throws {Refusal} with the candidates, where there are several
 */
export function resolveVolumeName(session: Session, word: string, volumes: readonly string[]): string | undefined {
  if (volumes.includes(word)) return word
  const candidates = volumes.filter((volume) => volume.startsWith(word))
  if (candidates.length <= 1) return candidates[0]
  throw new Refusal(
    `${quoted(word)} is the beginning of ${candidates.length} volumes: write more of the name of ${formatCandidates(session, candidates)}`,
  )
}

const MAX_LISTED = 10

function formatCandidates(session: Session, volumes: readonly string[]): string {
  const shown = volumes.slice(0, MAX_LISTED).map((volume) => {
    const source = volumeRecords.readUnlessDamaged(session, volume)?.source
    return source === undefined ? volume : `${volume} (${source})`
  })
  const more = volumes.length > MAX_LISTED ? ` or ${volumes.length - MAX_LISTED} others` : ''
  return shown.join(', ') + more
}

/**
 * Tells a volume from a directory.
 * @throws {Refusal} where that is not certain
 */
export async function resolveTarget(session: Session, target: TargetOperand): Promise<ResolvedTarget> {
  if (!('beginning' in target)) return target
  const { beginning, directory } = target
  const volumes = listRecordedVolumes(session)
  // The whole name is not taken for another thing, whatever the working directory has.
  if (volumes.includes(beginning)) return { volume: beginning }
  const hasCandidates = volumes.some((volume) => volume.startsWith(beginning))
  if (!hasCandidates) return directory === undefined ? { volume: beginning } : { directory }
  if (directory !== undefined && (await isExistingPath(session, directory))) {
    throw new Refusal(
      `${quoted(beginning)} is a directory here, and the beginning of a volume's name: write "./${beginning}", or the whole name`,
    )
  }
  return { volume: resolveVolumeName(session, beginning, volumes) ?? beginning }
}

async function isExistingPath(session: Session, path: string): Promise<boolean> {
  try {
    const handle = await pathLookups(session).open(path)
    using _ = closing(session.host.inodes, handle)
    // Nothing could be put back where a lookup gets no answer.
    return handle !== undefined
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return errorCode(error) !== 'ENOENT'
  }
}
