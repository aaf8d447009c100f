import { PRIVATE_STATE_DIRECTORIES } from '../config/defaults.ts'
import type { Host } from '../kernel/host.ts'
import { JOURNAL_FILE_SUFFIXES, LOG_MARK_SUFFIX } from '../ownership/journal/file-names.ts'
import { isVolumeId } from './volume-id.ts'

/** A node and the state directory that has its records. */
export interface Store {
  host: Host
  config: { stateDir: string }
}

/** Directory with the records of one mount or one volume. A call that works on these holds the lock in it. */
export interface RecordDirectory {
  path: string
  /** Its empty parents below this directory are removed with it. */
  top: string
  /** Name in messages: the volume, or the mount directory, or this directory's path if that is unknown. */
  name: string
  /** The volume that the directory has the journal of; undefined: it is a mount's directory. */
  volume?: string
  /** A waiting call is refused if the lock holder makes no progress. Volumes always have this property. */
  refusesStuckHolder?: true
}

interface MountRecordDirectory extends RecordDirectory {
  /**
   * The mount directory. If a call crashed while it created the record's nested directories, only the beginning of the mount
   * directory is known: '' if that beginning ends inside a UTF-8 character.
   */
  directory: string
  hasRecord: boolean
}

export const RECORD_FILE = 'record.json'
export const LOCK_FILE = 'lock'
export const JOURNAL_FILE = 'journal.db'
export const JOURNAL_FILES: readonly string[] = JOURNAL_FILE_SUFFIXES.map((suffix) => JOURNAL_FILE + suffix)
/** Lock of the process that walks a volume for another process. The file has its pid. */
export const WALKER_LOCK_FILE = 'walker.lock'
/** Has the origin of the target directory of a CSI volume. */
const TARGET_ORIGIN_FILE = 'target'
export const WALK_PROGRESS_FILE = 'progress.json'
export const GIVEN_UP_WALK_FILE = 'given-up.json'
/** Written by earlier versions. Now all reservations are in a directory of their own. */
const FORMER_RESERVATION_FILE = 'reservation.json'
/** Files that a call creates and removes itself. A record directory with no other file has no records. */
export const TRANSIENT_FILES: ReadonlySet<string> = new Set([
  LOCK_FILE,
  WALKER_LOCK_FILE,
  ...[FORMER_RESERVATION_FILE, WALK_PROGRESS_FILE, GIVEN_UP_WALK_FILE, TARGET_ORIGIN_FILE].flatMap((name) => [
    name,
    `${name}.new`,
  ]),
  `${RECORD_FILE}.new`,
  `${JOURNAL_FILE}.new`,
  JOURNAL_FILE + LOG_MARK_SUFFIX,
])

// A file name has at most 255 bytes, one of them for the mark. Shorter pieces stay readable.
const MAX_FILE_NAME_PIECE_LENGTH = 200

/**
 * Returns the record directory of a mount. A mount directory can be longer than a file name, so its percent-encoded
 * form is split into nested directories. Pieces after the first begin with the mark "+", which distinguishes them from
 * files.
 */
export function locateMountRecords(store: Pick<Store, 'config'>, directory: string): RecordDirectory {
  const top = locateAllMountRecords(store)
  return { path: encodeNestedPath(top, directory), top, name: directory }
}

function encodeNestedPath(top: string, name: string): string {
  const encoded = encodeURIComponent(name)
  let path = `${top}/${encoded.slice(0, MAX_FILE_NAME_PIECE_LENGTH)}`
  for (let start = MAX_FILE_NAME_PIECE_LENGTH; start < encoded.length; start += MAX_FILE_NAME_PIECE_LENGTH) {
    path += `/+${encoded.slice(start, start + MAX_FILE_NAME_PIECE_LENGTH)}`
  }
  return path
}

export function locateVolumeRecords({ config }: Pick<Store, 'config'>, volume: string): RecordDirectory {
  const path = `${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.ownership}/${volume}`
  return { path, top: config.stateDir, name: `volume ${volume}`, volume }
}

/** Returns the directory of the reservations of running calls. It has no other files. */
export function locateReservationDirectory({ config }: Pick<Store, 'config'>): string {
  return `${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.reservations}`
}

/** Returns the lock directory for publications of a CSI volume that allows one target. It has no records. */
export function locatePublicationLock({ config }: Pick<Store, 'config'>, key: string): RecordDirectory {
  const path = encodeNestedPath(`${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.publications}`, key)
  return { path, top: config.stateDir, name: `publication of ${key}`, refusesStuckHolder: true }
}

const IMPORT_DIRECTORY_SUFFIX = '.import'

/** Returns the directory where an import is staged, before one rename makes it the volume's record directory. */
export function locateImportDirectory({ config }: Pick<Store, 'config'>, volume: string): RecordDirectory {
  const path = `${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.ownership}/${volume}${IMPORT_DIRECTORY_SUFFIX}`
  return { path, top: config.stateDir, name: `import of volume ${volume}` }
}

/** Lists the volumes that have a running or an interrupted import. */
export function listVolumesInImport({ host, config }: Store): string[] {
  return host.files
    .list(`${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.ownership}`)
    .filter((name) => name.endsWith(IMPORT_DIRECTORY_SUFFIX))
    .map((name) => name.slice(0, -IMPORT_DIRECTORY_SUFFIX.length))
    .filter(isVolumeId)
    .sort()
}

function locateAllMountRecords({ config }: Pick<Store, 'config'>): string {
  return `${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.mounts}`
}

/** Lists the record directories of all mounts, also those with an unreadable record. */
export function listMountRecordDirectories(store: Store): MountRecordDirectory[] {
  const { files } = store.host
  const found: MountRecordDirectory[] = []
  const top = locateAllMountRecords(store)
  const visit = (path: string, encoded: string) => {
    const names = files.list(path)
    const own = names.filter(isOwnRecordFile)
    for (const name of names) if (!isOwnRecordFile(name)) visit(`${path}/${name}`, encoded + name.slice(1))
    if (own.length === 0 && names.length > 0) return
    const named = decodeFileName(encoded)
    const directory = locateMountRecords(store, named).path === path ? named : ''
    found.push({ path, top, name: directory || path, directory, hasRecord: own.includes(RECORD_FILE) })
  }
  for (const name of files.list(top)) if (name.startsWith('%')) visit(`${top}/${name}`, name)
  return found
}

/** Has the boot id of the node when the records of mounts that a reboot ended were last removed. */
export function locateSweptBootFile({ config }: Pick<Store, 'config'>): string {
  return `${config.stateDir}/boot`
}

/** Returns whether the records of mounts that a reboot ended have been removed in this boot. */
export function isSweptSinceBoot(store: Store): boolean {
  return store.host.files.read(locateSweptBootFile(store))?.trim() === store.host.bootId()
}

/** Lists all volumes that have a record directory. Other files next to these directories are ignored. */
export function listVolumesWithRecords({ host, config }: Store): string[] {
  return host.files.list(`${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.ownership}`).filter(isVolumeId).sort()
}

/**
 * Lists the files of a record directory that an interrupted call left behind, or a call whose disk failed. Such a
 * directory has only transient files.
 * @returns undefined if it has any other file
 */
export function listLeftoverFiles({ host }: Store, { path }: RecordDirectory): string[] | undefined {
  const own = host.files.list(path).filter(isOwnRecordFile)
  return own.every((name) => TRANSIENT_FILES.has(name)) ? own : undefined
}

/** `made`: publish created the target directory; `found`: it existed before. */
export type TargetDirectoryOrigin = 'made' | 'found'

/**
 * Records the origin of a target directory before publish creates it, because unpublish removes only a directory that
 * publish created. The file is removed with the mount's record. Call it under the mount's lock.
 */
export function writeTargetOrigin(store: Store, directory: string, origin: TargetDirectoryOrigin): void {
  const { path } = locateMountRecords(store, directory)
  // A crash of the node may lose the file: then unpublish keeps the directory, and kubelet removes it.
  store.host.files.replaceUntilBoot(`${path}/${TARGET_ORIGIN_FILE}`, `${origin}\n`)
}

/** Returns undefined if no origin is recorded. Earlier versions recorded none. */
export function readTargetOrigin(store: Store, directory: string): TargetDirectoryOrigin | undefined {
  const text = store.host.files.read(`${locateMountRecords(store, directory).path}/${TARGET_ORIGIN_FILE}`)?.trim()
  return text === 'made' || text === 'found' ? text : undefined
}

/** Returns false for a piece of a longer mount directory, which begins with this directory's name. */
function isOwnRecordFile(name: string): boolean {
  return !name.startsWith('+')
}

/** Returns '' if the name ends within a letter. */
function decodeFileName(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return ''
  }
}
