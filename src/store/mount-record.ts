import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import type { MountedView } from '../mount-table/mount-point.ts'
import { askedOf, askedSchema, type MountRequest } from '../request/mount-request.ts'
import { sourceText } from '../request/source.ts'
import { damagedRecord, problemOf, type RecordForm, readRecord, unlessUnreadable, writeRecord } from './json-record.ts'
import { mountStateDirectory, RECORD_FILE } from './paths.ts'
import { listMountPlaces } from './places.ts'

/** How the group was given, and why so, in words for people. */
const given = z.discriminatedUnion('by', [
  z.object({ by: z.literal('none'), why: z.optional(z.string()) }),
  z.object({ by: z.literal('walk'), group: z.number(), why: z.string() }),
  /** `from`: the group on disk that is shown as another. */
  z.object({ by: z.literal('idmap'), from: z.number(), why: z.string() }),
  z.object({ by: z.literal('option'), why: z.string() }),
])

const schema = z.object({
  /** The boot the mount belongs to: mount ids mean nothing in another. */
  boot: z.string(),
  directory: z.string(),
  pod: z.optional(z.string()),
  request: askedSchema,
  /** Where what is mounted lay when it was mounted: with a subPath, below the request's source. Undefined for what has none. */
  source: z.optional(z.string()),
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

const FORM: RecordForm<MountRecord> = { format: 2, schema }

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
    boot,
    directory: request.directory,
    pod: request.pod,
    request: askedOf(request),
    source: source?.path ?? sourceText(request.source),
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

/** Undefined where there is none: what is mounted is then nobody's. @throws as `readRecord` does */
export function readMountRecord(host: Host, stateDir: string, directory: string): MountRecord | undefined {
  const path = recordFile(stateDir, directory)
  const record = readRecord(host, path, FORM)
  if (record !== undefined && record.directory !== directory) throw damagedRecord(path)
  return record
}

/** Whether there is one, also where nobody can tell what it says. */
export function hasMountRecord(host: Host, stateDir: string, directory: string): boolean {
  return host.files.read(recordFile(stateDir, directory)) !== undefined
}

function recordFile(stateDir: string, directory: string): string {
  return `${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`
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
  host.files.makeDirectory(mountStateDirectory(stateDir, record.directory))
  writeRecord(host, recordFile(stateDir, record.directory), FORM, record)
}

export function removeMountRecord(host: Host, stateDir: string, directory: string): void {
  host.files.remove(recordFile(stateDir, directory))
}

/** All records that can be read, of whatever boot. */
export function listMountRecords(host: Host, stateDir: string): MountRecord[] {
  return recorded(host, stateDir).flatMap(
    (directory) => unlessUnreadable(() => readMountRecord(host, stateDir, directory)) ?? [],
  )
}

/** The mount directories whose records cannot be read, and why. */
export function listUnreadableMounts(
  host: Host,
  stateDir: string,
): { directory: string; problem: NonNullable<ReturnType<typeof problemOf>> }[] {
  return recorded(host, stateDir).flatMap((directory) => {
    const problem = problemOf(() => readMountRecord(host, stateDir, directory))
    return problem === undefined ? [] : [{ directory, problem }]
  })
}

function recorded(host: Host, stateDir: string): string[] {
  const places = listMountPlaces(host, stateDir).filter(({ hasRecord, directory }) => hasRecord && directory !== '')
  return places.map(({ directory }) => directory)
}

/** The topmost mount is the one the record speaks of. */
export function isOurs(
  record: MountRecord | undefined,
  { mounted, boot }: { mounted: MountedView | 'broken' | undefined; boot: string },
): record is MountRecord {
  if (record?.mounted === undefined || mounted === undefined || mounted === 'broken') return false
  return record.boot === boot && record.mounted.mountId === String(mounted.mountId)
}
