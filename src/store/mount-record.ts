import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import type { MountedView } from '../mount-table/mount-point.ts'
import { askedOf, askedSchema, type MountRequest } from '../request/mount-request.ts'
import { readRecord, writeRecord } from './json-record.ts'
import { mountStateDirectory, RECORD_FILE } from './paths.ts'
import { listMountPlaces } from './places.ts'

const FORMAT = 2

/** How the group was given, and why so, in words for people. */
const given = z.discriminatedUnion('by', [
  z.object({ by: z.literal('none'), why: z.optional(z.string()) }),
  z.object({ by: z.literal('walk'), group: z.number(), why: z.string() }),
  /** `from`: the group on disk that is shown as another. */
  z.object({ by: z.literal('idmap'), from: z.number(), why: z.string() }),
  z.object({ by: z.literal('option'), why: z.string() }),
])

const schema = z.object({
  format: z.literal(FORMAT),
  /** The boot the mount belongs to: mount ids mean nothing in another. */
  boot: z.string(),
  directory: z.string(),
  pod: z.optional(z.string()),
  request: askedSchema,
  /** Where what is mounted lay when it was mounted: with a subPath, below the request's source. */
  source: z.string(),
  /** What told the source from others of its name; undefined where its root's inode does. */
  identity: z.optional(z.string()),
  /** The volume's identity; undefined where the volume goes with its mount. */
  volume: z.optional(z.string()),
  given,
  /** The mount, once it is finished; undefined: a call is making it, or was interrupted. */
  mounted: z.optional(
    z.object({
      /** Decimal, as it has 64 bits. */
      mountId: z.string(),
      device: z.number(),
      /** The mount namespace it was made in: its id means nothing in another. */
      namespace: z.string(),
      /** Milliseconds since 1970. */
      since: z.number(),
    }),
  ),
  /** The mount it took the place of, or is about to, with the staging directory of its daemon. */
  replaces: z.optional(z.object({ mountId: z.string(), staging: z.optional(z.string()) })),
  /** The staging directory its daemon was started with, by which that is found. */
  staging: z.optional(z.string()),
  /** The same of daemons whose mounts it took the place of: each ends by itself when its last user has gone. */
  replacedDaemons: z.array(z.string()),
  /** The pod gave secrets, which are nowhere kept: only a call that brings them can mount anew. */
  hadSecrets: z.boolean(),
})

/** What is known on disk about one mount directory; `unmount` gets no options, so this is all it has. */
export type MountRecord = z.infer<typeof schema>

/** What a record says of the group that a mount gives. */
export type Given = MountRecord['given']

/** What a record keeps of a source; a volume that only its mount knows is added when it is made. */
export interface SourceFacts {
  identity?: string | undefined
  volume: string | undefined
  path: string
}

/** Of a mount that is yet to be made. */
export function newMountRecord(request: MountRequest, boot: string, source: SourceFacts | undefined): MountRecord {
  return {
    format: FORMAT,
    boot,
    directory: request.directory,
    pod: request.pod,
    request: askedOf(request),
    source: source?.path ?? request.source,
    identity: source?.identity,
    volume: source?.volume,
    given: { by: 'none' },
    replacedDaemons: [],
    hadSecrets: false,
  }
}

/** The request that a record was made for. */
export function requestOf({ request, directory, pod }: MountRecord): MountRequest {
  return { ...request, directory, pod }
}

/** Undefined when there is none, it cannot be understood or is another's: what is mounted is then nobody's. */
export function readMountRecord(host: Host, stateDir: string, directory: string): MountRecord | undefined {
  const record = readRecord(host, `${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`, schema)
  return record?.directory === directory ? record : undefined
}

/**
 * The staging directory of the daemon that serves the mount that is there; undefined where none does, or the record
 * speaks of other mounts.
 */
export function stagingOf({ mounted, staging, replaces }: MountRecord, there: bigint | number): string | undefined {
  if (String(there) === mounted?.mountId) return staging
  // A call was interrupted, or is about to replace it.
  return String(there) === replaces?.mountId ? replaces.staging : undefined
}

export function writeMountRecord(host: Host, stateDir: string, record: MountRecord): void {
  const place = mountStateDirectory(stateDir, record.directory)
  host.files.makeDirectory(place)
  writeRecord(host, `${place}/${RECORD_FILE}`, record)
}

export function removeMountRecord(host: Host, stateDir: string, directory: string): void {
  host.files.remove(`${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`)
}

/** All records, of whatever boot. */
export function listMountRecords(host: Host, stateDir: string): MountRecord[] {
  const places = listMountPlaces(host, stateDir).filter(({ hasRecord, directory }) => hasRecord && directory !== '')
  return places.flatMap(({ directory }) => readMountRecord(host, stateDir, directory) ?? [])
}

/** The topmost mount is the one the record speaks of. */
export function isOurs(
  record: MountRecord | undefined,
  { mounted, boot }: { mounted: MountedView | 'broken' | undefined; boot: string },
): record is MountRecord {
  if (record?.mounted === undefined || mounted === undefined || mounted === 'broken') return false
  return record.boot === boot && record.mounted.mountId === String(mounted.mountId)
}
