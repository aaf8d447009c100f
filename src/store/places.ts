import type { Host } from '../host/host.ts'
import { PRIVATE } from '../request/defaults.ts'

/** A node, and where its records are kept. */
export interface Store {
  host: Host
  config: { stateDir: string }
}

/** What the state directory keeps of one mount directory or one volume. Whoever works on that holds the lock in it. */
export interface Place {
  path: string
  /** Its empty parents go with it, up to here. */
  top: string
  /** For people: a mount directory; its own path where that has no whole name; a volume. */
  name: string
  /** Whose journal lies there; undefined for a mount directory's. */
  volume?: string
  /** A call that waits for the lock is refused if its holder makes no progress. Of a volume's place that always holds. */
  refusesStuckHolder?: true
}

interface MountPlace extends Place {
  /**
   * What its name stands for. Where a call was interrupted while it made a place with a longer name, that is cut short,
   * or '' where it is cut within a letter.
   */
  directory: string
  hasRecord: boolean
}

export const RECORD_FILE = 'record.json'
export const LOCK_FILE = 'lock'
export const JOURNAL_FILE = 'journal.db'
/** With SQLite's own last: without the journal they say nothing. */
export const JOURNAL_FILES: readonly string[] = ['', '-journal', '-wal', '-shm'].map((end) => JOURNAL_FILE + end)
/** A lock that the process has which walks a volume for another one; it says which process that is. */
export const WALKER_FILE = 'walker.lock'
/** Says where the target directory of a CSI volume comes from. */
export const TARGET_FILE = 'target'
export const PROGRESS_FILE = 'progress.json'
export const GIVEN_UP_FILE = 'given-up.json'
/** Of earlier versions: now all lie in a directory of their own. */
const FORMER_RESERVATION = 'reservation.json'
/**
 * What a call makes for its own time and takes away itself; also the new file by way of which a record is replaced. Of
 * a place that has nothing else, nothing is remembered.
 */
export const TRANSIENT_FILES: ReadonlySet<string> = new Set([
  LOCK_FILE,
  WALKER_FILE,
  ...[FORMER_RESERVATION, PROGRESS_FILE, GIVEN_UP_FILE, TARGET_FILE].flatMap((name) => [name, `${name}.new`]),
  `${RECORD_FILE}.new`,
])

// Long enough for a file name (255) after a one-byte mark, short enough to stay readable.
const LONGEST_PIECE = 200

/**
 * A mount directory can be longer than a file name, so its percent-encoded form is cut into nested directories; pieces
 * after the first begin with "+", which keeps them apart from the files among them.
 */
export function mountPlace(store: Pick<Store, 'config'>, directory: string): Place {
  const top = mountsDirectory(store)
  return { path: nestedPath(top, directory), top, name: directory }
}

function nestedPath(top: string, name: string): string {
  const encoded = encodeURIComponent(name)
  let path = `${top}/${encoded.slice(0, LONGEST_PIECE)}`
  for (let start = LONGEST_PIECE; start < encoded.length; start += LONGEST_PIECE) {
    path += `/+${encoded.slice(start, start + LONGEST_PIECE)}`
  }
  return path
}

export function volumePlace({ config }: Pick<Store, 'config'>, volume: string): Place {
  const path = `${config.stateDir}/${PRIVATE.ownership}/${volume}`
  return { path, top: config.stateDir, name: `volume ${volume}`, volume }
}

/** Where calls at work say what they are at. Only their own files lie here, whatever is remembered elsewhere. */
export function reservationsDirectory({ config }: Pick<Store, 'config'>): string {
  return `${config.stateDir}/${PRIVATE.reservations}`
}

/** Where publications of a CSI volume that allows one target wait for each other. Nothing is remembered there. */
export function publicationPlace({ config }: Pick<Store, 'config'>, key: string): Place {
  const path = nestedPath(`${config.stateDir}/${PRIVATE.publications}`, key)
  return { path, top: config.stateDir, name: `publication of ${key}`, refusesStuckHolder: true }
}

const IMPORT = '.import'

/** Where what another node has exported of a volume is put together, before it becomes the volume's place at once. */
export function importPlace({ config }: Pick<Store, 'config'>, volume: string): Place {
  const path = `${config.stateDir}/${PRIVATE.ownership}/${volume}${IMPORT}`
  return { path, top: config.stateDir, name: `import of volume ${volume}` }
}

/** The volumes of which an import is under way, or was interrupted. */
export function listImports({ host, config }: Store): string[] {
  return host.files
    .list(`${config.stateDir}/${PRIVATE.ownership}`)
    .filter((name) => name.endsWith(IMPORT))
    .map((name) => name.slice(0, -IMPORT.length))
    .filter(isVolumeIdentity)
    .sort()
}

function mountsDirectory({ config }: Pick<Store, 'config'>): string {
  return `${config.stateDir}/${PRIVATE.mounts}`
}

/** All places of mount directories, whether or not their record can be understood. */
export function listMountPlaces(store: Store): MountPlace[] {
  const { files } = store.host
  const found: MountPlace[] = []
  const top = mountsDirectory(store)
  const look = (path: string, encoded: string) => {
    const names = files.list(path)
    const own = names.filter(isOwn)
    for (const name of names) if (!isOwn(name)) look(`${path}/${name}`, encoded + name.slice(1))
    if (own.length === 0 && names.length > 0) return
    const named = decoded(encoded)
    const directory = mountPlace(store, named).path === path ? named : ''
    found.push({ path, top, name: directory || path, directory, hasRecord: own.includes(RECORD_FILE) })
  }
  for (const name of files.list(top)) if (name.startsWith('%')) look(`${top}/${name}`, name)
  return found
}

/** Whether it is the name of a volume, of either form. Never a path. */
export function isVolumeIdentity(text: string): boolean {
  return /^(text-[0-9a-f]{40}|[0-9a-f.]+-[0-9a-f]+-[0-9a-f]+)$/.test(text)
}

/** Every volume that has a directory, whatever is in it. What people have put beside them is passed over. */
export function listVolumes({ host, config }: Store): string[] {
  return host.files.list(`${config.stateDir}/${PRIVATE.ownership}`).filter(isVolumeIdentity).sort()
}

/**
 * The files of a place that is a leftover of an interrupted call, or of one whose disk failed: nothing is there but
 * what calls make for their own time.
 * @returns undefined where there is anything else
 */
export function leftoverFiles({ host }: Store, { path }: Place): string[] | undefined {
  const own = host.files.list(path).filter(isOwn)
  return own.every((name) => TRANSIENT_FILES.has(name)) ? own : undefined
}

/** Not the place of a longer mount directory, of which this one's name is the beginning. */
function isOwn(name: string): boolean {
  return !name.startsWith('+')
}

/** '' where it was cut within a letter. */
function decoded(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return ''
  }
}
