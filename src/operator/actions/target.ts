import { quoted, Refusal } from '../../errors/refusal.ts'
import { deferClose, errorCode } from '../../host/host.ts'
import { createPathLookups } from '../../mount-table/path-lookups.ts'
import { listMountRecords } from '../../store/mount-record.ts'
import { listVolumes, type Store } from '../../store/record-directories.ts'
import type { Session } from '../../store/session.ts'
import { mayBeginVolumeId } from '../../store/volume-id.ts'
import { volumeRecords } from '../../store/volume-record.ts'

/** A directory, or a volume by its recorded name. */
export type ResolvedTarget = { directory: string } | { volume: string }

/**
 * A target as the operator writes it. `beginning` may be the beginning of a volume's name.
 * @property directory the alternative: a path from the working directory; undefined: only a volume's name is possible
 */
export type TargetOperand = ResolvedTarget | { beginning: string; directory: string | undefined }

/** Removes the ellipsis of a word that was copied from a narrow table. */
export function trimEllipsis(word: string): string {
  // No regular expression: the build keeps its letters beyond ASCII in bytes that the executable reads as Latin-1.
  return word.endsWith('…') ? word.slice(0, -1) : word
}

/** Like `mayBeginVolumeId`, also for a word that was copied with its ellipsis. */
export function isVolumePrefix(text: string): boolean {
  return mayBeginVolumeId(trimEllipsis(text))
}

/** Lists every volume with a record or a recorded mount on this node. */
export function listRecordedVolumes(store: Store): string[] {
  const mounted = listMountRecords(store).flatMap(({ volume }) => volume ?? [])
  return [...new Set([...listVolumes(store), ...mounted])].sort()
}

/**
 * Returns the one volume whose name equals, or begins with, the word; undefined if there is none.
 * @throws {Refusal} with the candidates, if there are several
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
 * Decides whether the operator named a volume or a directory.
 * @throws {Refusal} if both are possible
 */
export async function resolveTarget(session: Session, target: TargetOperand): Promise<ResolvedTarget> {
  if (!('beginning' in target)) return target
  const { beginning, directory } = target
  const volumes = listRecordedVolumes(session)
  // A complete volume name wins over a directory of the same name.
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
    const handle = await createPathLookups(session).open(path)
    using _ = deferClose(session.host.inodes, handle)
    // A path whose lookup is unresponsive does not count, as nothing could be restored there.
    return handle !== undefined
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return errorCode(error) !== 'ENOENT'
  }
}
