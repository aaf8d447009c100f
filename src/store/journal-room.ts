import type { Quota } from '../ownership/journal/quota.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { NodeConfig } from '../request/defaults.ts'
import { importPlace, listImports, listVolumes, type Place, type Store, volumePlace } from './places.ts'
import { volumeRecords } from './volume-record.ts'

const MIB = 2 ** 20
const SHARE = 0.1
/** A file system that is smaller is filled by other things first, and SQLite says so. */
const LEAST = 16 * MIB
/** Room for a few thousand inodes, and for some hundred thousand. A large journal asks less often. */
const LEAST_GIVEN = MIB / 4
const MOST_GIVEN = 16 * MIB
/** Of the file of what was given; it is begun anew then. */
const LONGEST = 2 ** 16

/**
 * The most bytes that all that is remembered of volumes may take; undefined where the file system of the state directory
 * does not tell its size.
 */
export function mostOfAll({ host, config }: Store): number | undefined {
  const size = host.files.capacity(config.stateDir)
  return size && Math.max(LEAST, Math.floor(size * SHARE))
}

interface Taken {
  bytes: number
  /** The volume that takes most. */
  largest: { volume: string; bytes: number } | undefined
}

/** What is remembered of volumes, and being imported. Looks at every file of every volume. */
export function takenByAll(store: Store): Taken {
  const taken: Taken = { bytes: 0, largest: undefined }
  for (const volume of listVolumes(store)) {
    const bytes = sizeOf(store, volumePlace(store, volume))
    taken.bytes += bytes
    if (bytes > (taken.largest?.bytes ?? 0)) taken.largest = { volume, bytes }
  }
  for (const volume of listImports(store)) taken.bytes += sizeOf(store, importPlace(store, volume))
  return taken
}

function sizeOf({ host: { files } }: Store, { path }: Place): number {
  return files.list(path).reduce((sum, name) => sum + files.size(`${path}/${name}`), 0)
}

/**
 * Lets a volume's journal grow. All volumes are looked at only where what was given since the last time could be too
 * much: so a mount takes no longer for what others have left, and many small journals are not passed over.
 * @param size the journal's bytes now
 * @param wanted the fewest more that help
 * @returns as many or more
 * @throws {Refusal} where all journals together would take too much
 */
export function giveRoom(store: Store, size: number, wanted = LEAST_GIVEN): number {
  const most = mostOfAll(store)
  const usual = Math.max(wanted, LEAST_GIVEN, Math.min(MOST_GIVEN, Math.ceil(size / 4)))
  if (most === undefined) return usual
  const known = givenSoFar(store)
  if (known !== undefined && known + usual <= most) return give(store, usual)
  const taken = takenByAll(store)
  if (taken.bytes + wanted > most) throw noRoom(store, taken, most)
  beginAnew(store, taken.bytes)
  return give(store, Math.min(usual, most - taken.bytes))
}

/** What a volume's journal may take. @throws {Refusal} where there is no room for a new one */
export function quotaOf(store: StoreWithQuota, isNew: boolean): Quota {
  const give = (size: number, wanted?: number) => giveRoom(store, size, wanted)
  return { maxBytes: store.config.stateQuota, reservedBytes: isNew ? give(0) : 0, reserve: give }
}

export interface StoreWithQuota extends Store {
  config: Pick<NodeConfig, 'stateDir' | 'stateQuota'>
}

// A line for what was found, and one for what was given each time since. Others add theirs meanwhile, without a lock:
// one added to a file that is just removed is lost, and found when all is looked at the next time. Nothing is synced, as
// what cannot be read is looked up.
const LINES = /^([=+]\d{1,16}\n)+$/

function pathOf({ config }: Store): string {
  return `${config.stateDir}/growth`
}

function givenSoFar(store: Store): number | undefined {
  const text = store.host.files.read(pathOf(store)) ?? ''
  if (text.length > LONGEST || !LINES.test(text) || !text.includes('=')) return undefined
  return (text.match(/\d+/g) ?? []).reduce((sum, bytes) => sum + Number(bytes), 0)
}

function beginAnew(store: Store, bytes: number): void {
  store.host.files.remove(pathOf(store))
  store.host.files.append(pathOf(store), `=${bytes}\n`)
}

function give(store: Store, bytes: number): number {
  store.host.files.append(pathOf(store), `+${bytes}\n`)
  return bytes
}

function noRoom(store: Store, { bytes, largest }: Taken, most: number): Refusal {
  const { stateDir } = store.config
  const volume = largest?.volume ?? ''
  const { record } = volumeRecords.find(store, volume)
  const where = record ? ` (${quoted(record.source)})` : ''
  return new Refusal(
    `the records of all volumes take ${inMib(bytes)} MiB of the ${inMib(most)} MiB that they may take on the file system of ${stateDir}, so nothing more is changed: ` +
      `call "modekeep gc", which forgets what is gone, or "modekeep restore ${volume}", which puts back the volume that takes most${where}, ${inMib(largest?.bytes ?? 0)} MiB; or mount without ownership "walk"`,
  )
}

export function inMib(bytes: number): number {
  return Math.ceil(bytes / MIB)
}
