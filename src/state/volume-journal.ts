import type { NodeConfig } from '../config/defaults.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { JournalSnapshot } from '../ownership/journal/copy.ts'
import { readFirstRecord } from '../ownership/journal/database.ts'
import { Journal, type NewJournalFacts } from '../ownership/journal/journal.ts'
import type { JournalQuota } from '../ownership/journal/quota.ts'
import {
  JOURNAL_FILE,
  listVolumesInImport,
  listVolumesWithRecords,
  locateImportDirectory,
  locateVolumeRecords,
  type RecordDirectory,
  type Store,
} from './record-directories.ts'
import { volumeRecords } from './volume-record.ts'

/**
 * Opens the journal of a volume. Call it under the volume's lock.
 * @param known a walk is recorded, so the journal must exist; otherwise a missing one is created
 * @param facts of the volume, to be recorded in the journal
 */
export function openJournal(store: Store, volume: string, known: boolean, facts?: NewJournalFacts): Journal {
  return Journal.open(store.host, locateJournal(store, volume), volume, known, facts)
}

/** Returns the text of the volume's record during its first walk. Undefined: its journal keeps none. @throws {Refusal} */
export function readFirstVolumeRecord(store: Store, volume: string): string | undefined {
  return readFirstRecord(store.host, locateJournal(store, volume))
}

/**
 * Opens the journal of a volume for reading, if it has one. A walk may write to it concurrently.
 * @param known a walk is recorded, so the journal must exist
 * @throws {Refusal} if it is missing or cannot be used
 */
export function openJournalForReading(store: Store, volume: string, known: boolean): Journal | undefined {
  return hasRequiredJournal(store, volume, known)
    ? Journal.openForReading(store.host, locateJournal(store, volume), volume, known)
    : undefined
}

/** Opens a snapshot of the journal at one moment; parameters and errors are those of `openJournalForReading`. */
export function openJournalSnapshot(store: Store, volume: string, known: boolean): JournalSnapshot | undefined {
  return hasRequiredJournal(store, volume, known)
    ? new JournalSnapshot(store.host, locateJournal(store, volume), volume, known)
    : undefined
}

function hasRequiredJournal(store: Store, volume: string, known: boolean): boolean {
  if (hasVolumeJournal(store, volume)) return true
  if (!known) return false
  const path = locateJournal(store, volume)
  throw Refusal.of('journal', `the ownership journal ${path} is missing, although the volume was walked before`)
}

/** Returns whether the volume has a journal, which shows that it was walked even without a readable record. */
export function hasVolumeJournal(store: Store, volume: string): boolean {
  return store.host.files.list(locateVolumeRecords(store, volume).path).includes(JOURNAL_FILE)
}

/** Returns whether the journal has no records. Call it as `openJournal`, and under the volume's lock. */
export function isJournalEmpty(store: Store, volume: string, known = false): boolean {
  using journal = openJournal(store, volume, known)
  return journal.isEmpty()
}

/** Returns false if a walk or a restore was not completed, or if a damaged record does not show whether it was. */
export function hasVolumeUniformGroup(store: Store, volume: string): boolean {
  if (volumeRecords.has(store, volume)) {
    const record = volumeRecords.readUnlessDamaged(store, volume)
    return record !== undefined && (record.complete || record.left !== undefined)
  }
  // A power cut during a first walk may leave only the journal.
  try {
    using journal = openJournalForReading(store, volume, false)
    return journal?.isEmpty() ?? true
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}

function locateJournal(store: Store, volume: string): string {
  return `${locateVolumeRecords(store, volume).path}/${JOURNAL_FILE}`
}

const BYTES_PER_MIB = 2 ** 20
const MAX_RECORDS_SHARE = 0.1
/** Lowest limit. Other files fill a file system first where that is too much, and SQLite reports it. */
const MIN_RECORDS_LIMIT_BYTES = 16 * BYTES_PER_MIB
/** Bytes of one reservation. A large journal reserves more, so that it reserves less often. */
const MIN_GROWTH_RESERVATION_BYTES = BYTES_PER_MIB / 4
const MAX_GROWTH_RESERVATION_BYTES = 16 * BYTES_PER_MIB
/** Greatest length of the growth file. A longer one is started again. */
const MAX_GROWTH_FILE_LENGTH = 2 ** 16

/** The most bytes for all records; undefined if the state directory's file system does not report its size. */
export function computeMaxRecordBytes({ host, config }: Store): number | undefined {
  const size = host.files.capacity(config.stateDir)
  return size && Math.max(MIN_RECORDS_LIMIT_BYTES, Math.floor(size * MAX_RECORDS_SHARE))
}

interface RecordUsage {
  bytes: number
  /** The volume whose records take most. */
  largest: { volume: string; bytes: number } | undefined
}

/** Measures the records of all volumes and imports. Reads the size of every file of every volume. */
export function measureAllRecords(store: Store): RecordUsage {
  const usage: RecordUsage = { bytes: 0, largest: undefined }
  for (const volume of listVolumesWithRecords(store)) {
    const bytes = measureRecordDirectory(store, locateVolumeRecords(store, volume))
    usage.bytes += bytes
    if (bytes > (usage.largest?.bytes ?? 0)) usage.largest = { volume, bytes }
  }
  for (const volume of listVolumesInImport(store))
    usage.bytes += measureRecordDirectory(store, locateImportDirectory(store, volume))
  return usage
}

function measureRecordDirectory({ host: { files } }: Store, { path }: RecordDirectory): number {
  return files.list(path).reduce((sum, name) => sum + files.size(`${path}/${name}`), 0)
}

/**
 * Reserves bytes by which a volume's journal may grow. Measures all volumes only if the bytes reserved since the last
 * measurement could exceed the limit. So the records of other volumes do not slow down a mount, and many small journals
 * count too.
 * @param size current bytes of the journal
 * @param wanted fewest additional bytes that help
 * @returns `wanted` or more
 * @throws {Refusal} if all journals together would take too much
 */
export function reserveJournalGrowth(store: Store, size: number, wanted = MIN_GROWTH_RESERVATION_BYTES): number {
  const limit = computeMaxRecordBytes(store)
  const growth = Math.max(
    wanted,
    MIN_GROWTH_RESERVATION_BYTES,
    Math.min(MAX_GROWTH_RESERVATION_BYTES, Math.ceil(size / 4)),
  )
  if (limit === undefined) return growth
  const reserved = readReservedTotalBytes(store)
  if (reserved !== undefined && reserved + growth <= limit) return recordJournalGrowth(store, growth)
  const usage = measureAllRecords(store)
  if (usage.bytes + wanted > limit) throw createRecordSpaceRefusal(store, usage, limit)
  restartGrowthFile(store, usage.bytes)
  return recordJournalGrowth(store, Math.min(growth, limit - usage.bytes))
}

/** Returns the quota of a volume's journal. @throws {Refusal} if there is no space for a new journal */
export function createJournalQuota(store: StoreWithQuota, isNew: boolean): JournalQuota {
  const reserve = (size: number, wanted?: number) => reserveJournalGrowth(store, size, wanted)
  return { maxBytes: store.config.stateQuota, reservedBytes: isNew ? reserve(0) : 0, reserve }
}

export interface StoreWithQuota extends Store {
  config: Pick<NodeConfig, 'stateDir' | 'stateQuota'>
}

// The growth file has a line with the measured bytes, then a line for each reservation since. Calls append
// concurrently, without a lock. A line that is appended to a file being removed is lost, until the next measurement
// counts its bytes. Nothing is synced, because an unreadable file leads to a new measurement.
const GROWTH_FILE_PATTERN = /^([=+]\d{1,16}\n)+$/

function locateGrowthFile({ config }: Store): string {
  return `${config.stateDir}/growth`
}

function readReservedTotalBytes(store: Store): number | undefined {
  const text = store.host.files.read(locateGrowthFile(store)) ?? ''
  if (text.length > MAX_GROWTH_FILE_LENGTH || !GROWTH_FILE_PATTERN.test(text) || !text.includes('=')) return undefined
  return (text.match(/\d+/g) ?? []).reduce((sum, bytes) => sum + Number(bytes), 0)
}

function restartGrowthFile(store: Store, bytes: number): void {
  store.host.files.remove(locateGrowthFile(store))
  store.host.files.append(locateGrowthFile(store), `=${bytes}\n`)
}

function recordJournalGrowth(store: Store, bytes: number): number {
  store.host.files.append(locateGrowthFile(store), `+${bytes}\n`)
  return bytes
}

function createRecordSpaceRefusal(store: Store, { bytes, largest }: RecordUsage, limit: number): Refusal {
  const { stateDir } = store.config
  const volume = largest?.volume ?? ''
  const { record } = volumeRecords.find(store, volume)
  const where = record ? ` (${quoteValue(record.source)})` : ''
  return Refusal.of(
    'journal-full',
    `the records of all volumes take ${roundUpToMib(bytes)} MiB of the ${roundUpToMib(limit)} MiB that they may take on the file system of ${stateDir}, so nothing more is changed`,
    `call "modekeep gc", which forgets what is gone, or "modekeep restore ${volume}", which puts back the volume that takes most${where}, ${roundUpToMib(largest?.bytes ?? 0)} MiB; or mount without ownership "walk"`,
  )
}

export function roundUpToMib(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_MIB)
}
