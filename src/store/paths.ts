import { PRIVATE } from '../request/defaults.ts'

// Long enough for a file name (255) after a one-byte mark, short enough to stay readable.
const LONGEST_PIECE = 200

/**
 * Where the state directory keeps what. A mount directory can be longer than a file name, so its percent-encoded form is
 * cut into nested directories; pieces after the first begin with "+", which keeps them apart from the files among them.
 */
export function mountStateDirectory(stateDir: string, directory: string): string {
  const encoded = encodeURIComponent(directory)
  const pieces: string[] = []
  for (let start = 0; start < encoded.length; start += LONGEST_PIECE) {
    pieces.push(`${start === 0 ? '' : '+'}${encoded.slice(start, start + LONGEST_PIECE)}`)
  }
  return `${mountsDirectory(stateDir)}/${pieces.join('/')}`
}

export function mountsDirectory(stateDir: string): string {
  return `${stateDir}/${PRIVATE.mounts}`
}

export function volumeStateDirectory(stateDir: string, volume: string): string {
  return `${volumesDirectory(stateDir)}/${volume}`
}

export function journalFile(stateDir: string, volume: string): string {
  return `${volumeStateDirectory(stateDir, volume)}/${JOURNAL_FILE}`
}

export function volumesDirectory(stateDir: string): string {
  return `${stateDir}/${PRIVATE.ownership}`
}

export const RECORD_FILE = 'record.json'
export const LOCK_FILE = 'lock'
export const JOURNAL_FILE = 'journal.db'
/** With SQLite's own last: without the journal they say nothing. */
export const JOURNAL_FILES: readonly string[] = ['', '-journal', '-wal', '-shm'].map((end) => JOURNAL_FILE + end)
export const PROGRESS_FILE = 'progress.json'
export const RESERVATION_FILE = 'reservation.json'
/**
 * What a call makes for its own time and takes away itself; also the new file by way of which a record is replaced. Of a
 * place that has nothing else, nothing is remembered.
 */
export const TRANSIENT_FILES: ReadonlySet<string> = new Set([
  LOCK_FILE,
  ...[RESERVATION_FILE, PROGRESS_FILE].flatMap((name) => [name, `${name}.new`]),
  `${RECORD_FILE}.new`,
])
/** Holds the id of the boot in which records were last swept. */
export const BOOT_FILE = 'boot'
export const SWEEP_LOCK_FILE = 'sweep.lock'
export const RESERVATIONS_LOCK_FILE = 'reservations.lock'
export const METRICS_FILE = 'metrics.json'
export const METRICS_LOCK_FILE = 'metrics.lock'
