import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import type { MountedView } from '../mount-table/mount-point.ts'
import type { MountRequest } from '../request/request.ts'
import { readRecord, writeRecord } from './json-record.ts'
import { mountStateDirectory, RECORD_FILE } from './paths.ts'
import { listMountPlaces } from './places.ts'
import { requestKey } from './request-key.ts'

const FORMAT = 1

/** `preparing`: a call is, or was when it died, making the mount. `ready`: the mount with this id is finished. */
const schema = z.object({
  format: z.literal(FORMAT),
  phase: z.enum(['preparing', 'ready']),
  /** The boot the mount belongs to: mount ids mean nothing in another. */
  boot: z.string(),
  directory: z.string(),
  pod: z.string(),
  /** The request in a fixed form, to tell a repeated call from a changed one. */
  request: z.string(),
  /** Where what is mounted lay when it was mounted: with a subPath, below the request's source. */
  source: z.string(),
  fsType: z.string(),
  /** What told the source from others of its name, '' where its root's inode does. */
  identity: z._default(z.string(), ''),
  /** The volume's identity, empty where the volume goes with its mount, and its device number, -1 then. */
  volume: z.string(),
  device: z.number(),
  /** How the group was given, and why so, in words for people. */
  ownership: z._default(z.enum(['none', 'walk', 'idmap', 'option']), 'none'),
  why: z._default(z.string(), ''),
  /** The group a walk gives, -1 where there is none. */
  walkGroup: z.number(),
  /** The group on disk that an idmapped mount shows as another, -1 where none is mapped. */
  mappedFrom: z._default(z.number(), -1),
  /** Milliseconds since 1970. */
  since: z._default(z.number(), 0),
  /** Decimal, as it has 64 bits; empty while preparing. */
  mountId: z.string(),
  /** The mount it took the place of, or is about to: '' where there was none. */
  replaces: z._default(z.string(), ''),
  /** That mount's `staging`. */
  replacesStaging: z._default(z.string(), ''),
  /** The mount namespace it was made in: its id means nothing in another. */
  namespace: z._default(z.string(), ''),
  /** The staging directory its daemon was started with, by which that is found; '' where there is none. */
  staging: z._default(z.string(), ''),
  /** The same of daemons whose mounts it took the place of: each ends by itself when its last user has gone. */
  replacedDaemons: z._default(z.array(z.string()), []),
  /** The pod gave secrets, which are nowhere kept: only a call that brings them can mount anew. */
  hadSecrets: z._default(z.boolean(), false),
})

/** What is known on disk about one mount directory; `unmount` gets no options, so this is all it has. */
export type MountRecord = z.infer<typeof schema>

/** What a record keeps of a source; a volume that only its mount knows is added when it is made. */
export interface SourceFacts {
  root: { device: number } | undefined
  identity: string
  volume: string | undefined
  path: string
}

export function newMountRecord(request: MountRequest, boot: string, source: SourceFacts | undefined): MountRecord {
  return {
    format: FORMAT,
    phase: 'preparing',
    boot,
    directory: request.directory,
    pod: request.pod,
    request: requestKey(request),
    source: source?.path ?? request.source,
    fsType: request.fsType,
    identity: source?.identity ?? '',
    volume: source?.volume ?? '',
    device: source?.root?.device ?? -1,
    ...NOTHING_GIVEN,
    since: 0,
    mountId: '',
    replaces: '',
    replacesStaging: '',
    namespace: '',
    staging: '',
    replacedDaemons: [],
    hadSecrets: false,
  }
}

/** What a record says of the group that a mount gives. */
export type Given = Pick<MountRecord, 'ownership' | 'why' | 'walkGroup' | 'mappedFrom'>

export const NOTHING_GIVEN: Given = { ownership: 'none', why: '', walkGroup: -1, mappedFrom: -1 }

/** Undefined when there is none, it cannot be understood or is another's: what is mounted is then nobody's. */
export function readMountRecord(host: Host, stateDir: string, directory: string): MountRecord | undefined {
  const record = readRecord(host, `${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`, schema)
  return record?.directory === directory ? asOfToday(record) : undefined
}

/** The staging directory of the daemon that serves a mount: '' where none does, or the record speaks of other mounts. */
export function stagingOf(
  { mountId, staging, replaces, replacesStaging }: MountRecord,
  there: number | bigint | string,
): string {
  if (String(there) === mountId) return staging
  // A call has died, or is about to replace it.
  return String(there) === replaces ? replacesStaging : ''
}

export function writeMountRecord(host: Host, stateDir: string, record: MountRecord): void {
  const place = mountStateDirectory(stateDir, record.directory)
  host.files.makeDirectory(place)
  writeRecord(host, `${place}/${RECORD_FILE}`, record)
}

export function removeMountRecord(host: Host, stateDir: string, directory: string): void {
  host.files.remove(`${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`)
}

/** Versions that only walked did not say so. */
function asOfToday(record: MountRecord): MountRecord {
  return record.walkGroup >= 0 && record.ownership === 'none' ? { ...record, ownership: 'walk' } : record
}

/** All records, of whatever phase and boot. */
export function listMountRecords(host: Host, stateDir: string): MountRecord[] {
  const places = listMountPlaces(host, stateDir).filter(({ hasRecord, directory }) => hasRecord && directory !== '')
  return places.flatMap(({ directory }) => readMountRecord(host, stateDir, directory) ?? [])
}

/** The topmost mount is the one the record speaks of. */
export function isOurs(
  record: MountRecord | undefined,
  view: { mounted: MountedView | 'broken' | undefined; boot: string },
): record is MountRecord {
  if (record === undefined || view.mounted === undefined || view.mounted === 'broken') return false
  return record.phase === 'ready' && record.boot === view.boot && record.mountId === String(view.mounted.mountId)
}
