import * as z from 'zod/mini'
import { type ProcessId, tolerateErrno } from '../host/host.ts'
import type { MountedView } from '../mount-table/mount-point.ts'
import { createRequestedMountSchema, type MountRequest, pickRequestedMount } from '../request/mount-request.ts'
import { LIFECYCLES } from '../request/rule.ts'
import { createSecretKeysSchema } from '../request/secret-keys.ts'
import { formatSource } from '../request/source.ts'
import { listMountPlaces, mountPlace, RECORD_FILE, type Store } from './places.ts'
import { type Found, RecordKind } from './record.ts'

function schema() {
  const text = z.string()
  const optional = z.optional(text)
  const number = z.number()
  /** How the group was given, and why so, in words for people. */
  const given = z.discriminatedUnion('by', [
    z.object({ by: z.literal('none'), why: optional }),
    /** `skipped`: which inodes the walk skipped, in words. */
    z.object({ by: z.literal('walk'), group: number, why: text, skipped: optional }),
    /** `from`: the group on disk that is shown as another. */
    z.object({ by: z.literal('idmap'), from: number, why: text }),
    z.object({ by: z.literal('option'), why: text }),
  ])

  return z.object({
    /** The boot the mount belongs to: mount ids mean nothing in another. */
    boot: text,
    directory: text,
    pod: optional,
    /** The pod's. Records of earlier versions have none. */
    namespace: optional,
    /** Of a CSI volume. */
    lifecycle: z.optional(z.enum(LIFECYCLES)),
    /** Records of earlier versions have none. */
    publication: z.optional(z.object({ volumeId: text, isSingleWriter: z.boolean() })),
    /** What the rule that allowed it said; undefined: true. */
    setGid: z.optional(z.boolean()),
    /** What that rule said of groups of the system. */
    systemGroups: z.optional(z.boolean()),
    protectedGroups: z.optional(z.array(text)),
    /** How the rule that allowed it passes the keys of its Secret to a FUSE program. */
    secretKeys: z.optional(createSecretKeysSchema()),
    request: createRequestedMountSchema(),
    /** Where what is mounted lay when mounted: with a subPath, below the request's source. Undefined: it has none. */
    source: optional,
    /** What told the source from others of its name; undefined where its root's inode does. */
    identity: optional,
    /** The volume's identity; undefined where the volume goes with its mount. */
    volume: optional,
    given,
    /** Names the mounts inside of the source that its pod did not see when it was made; undefined: there were none. */
    hiddenSubmounts: optional,
    /** The mount, once it is finished; undefined: a call is making it, or was interrupted. */
    mounted: z.optional(
      z.object({
        /** Decimal, as it has 64 bits. */
        mountId: text,
        device: number,
        /** The mount namespace it was made in: its id means nothing in another. */
        namespace: text,
        /** Milliseconds since 1970. */
        since: number,
        /** The devices of its file system, as `BlockDevices` names them; undefined: it has none, or an earlier version wrote it. */
        devices: z.optional(z.array(text)),
        /** The id of the mount in the mount table, for a volume that has a file system of its own. */
        tableId: z.optional(number),
      }),
    ),
    /** The mount it took the place of, or is about to, with the staging directory of its daemon. */
    replaces: z.optional(z.object({ mountId: text, staging: optional })),
    /** The staging directory its daemon was started with, by which that is found. */
    staging: optional,
    /** The same of daemons whose mounts it took the place of: each ends by itself when its last user has gone. */
    replacedDaemons: z.array(text),
    /**
     * The processes that were started with a staging directory and ran when its mount was ready: no other one is its
     * daemon, whatever its arguments. Records of earlier versions have none: whoever has the mark is taken for it.
     */
    daemons: z.optional(
      z.array(z.object({ staging: text, processes: z.array(z.object({ pid: number, start: text })) })),
    ),
    /** The pod gave secrets, which are nowhere kept: only a call that brings them can mount anew. */
    hadSecrets: z.boolean(),
    /**
     * The volume is unmounted, but something of it is left in the directory of its pod, which kubelet cannot remove, or
     * its file system is still in use.
     * `pod gone`: heal unmounted it in kubelet's place, and the volume's own directory is to be removed too.
     */
    ended: z.optional(z.enum(['unmounted', 'pod gone'])),
    /** When an unmount first found its file system busy: milliseconds of this boot's monotonic clock. */
    busySince: z.optional(number),
  })
}

/** What is known on disk about one mount directory; `unmount` gets no options, so this is all it has. */
export type MountRecord = z.infer<ReturnType<typeof schema>>

/** Without one, what is mounted is nobody's. */
export const mountRecords = new RecordKind<MountRecord>({
  format: 2,
  schema,
  ownerOf: ({ directory }) => directory,
  directoryOf: (store, directory) => mountPlace(store, directory).path,
  name: RECORD_FILE,
})

/** What a record says of the group that a mount gives. */
export type Given = MountRecord['given']

/** What the rules that permit a request say of it. */
export type RuleFacts = Pick<MountRequest, 'setGid' | 'systemGroups' | 'protectedGroups' | 'secretKeys'>

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
    namespace: request.namespace,
    lifecycle: request.lifecycle,
    publication: request.publication,
    setGid: request.setGid,
    systemGroups: request.systemGroups,
    protectedGroups: request.protectedGroups && [...request.protectedGroups],
    secretKeys: request.secretKeys,
    request: pickRequestedMount(request),
    source: source?.path ?? formatSource(request.source),
    identity: source?.identity,
    volume: source?.volume,
    given: { by: 'none' },
    replacedDaemons: [],
    hadSecrets: false,
  }
}

/** The request that a record was made for. */
export function requestOf(record: MountRecord): MountRequest {
  const { request, directory, pod, namespace, lifecycle, publication } = record
  return { ...request, directory, pod, namespace, lifecycle, publication, ...ruleFactsOf(record) }
}

/** What the rule that allowed a mount said, of the mount or of its record. */
export function ruleFactsOf({ setGid, systemGroups, protectedGroups, secretKeys }: RuleFacts): RuleFacts {
  return { setGid, systemGroups, protectedGroups, secretKeys }
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

/** The processes that a daemon consisted of when its mount was ready; undefined: nobody knows. */
export function processesKnown({ daemons }: Pick<MountRecord, 'daemons'>, staging: string): ProcessId[] | undefined {
  return daemons?.find((daemon) => daemon.staging === staging)?.processes
}

/** Every mount directory that has a record, of whatever boot. */
export function listMounts(store: Store): ({ directory: string } & Found<MountRecord>)[] {
  return listMountPlaces(store)
    .filter(({ hasRecord, directory }) => hasRecord && directory !== '')
    .map(({ directory }) => ({ directory, ...mountRecords.find(store, directory) }))
}

/**
 * The same of those of so many directories that have one, at the price of a look for each of them, however many others
 * are on record.
 */
export function findMounts(store: Store, directories: Iterable<string>): ReturnType<typeof listMounts> {
  return [...directories].flatMap((directory) => {
    // Most mounts are others'.
    const found = hasMountRecord(store, directory) ? mountRecords.find(store, directory) : {}
    return (found.record ?? found.problem) ? [{ directory, ...found }] : []
  })
}

/** Readable or not. No mount has one where its name would be longer than any path. */
export function hasMountRecord(store: Store, directory: string): boolean {
  const path = `${mountPlace(store, directory).path}/${RECORD_FILE}`
  return tolerateErrno('ENAMETOOLONG', () => store.host.files.has(path)) ?? false
}

/** Those that can be read. */
export function listMountRecords(store: Store): MountRecord[] {
  return listMounts(store).flatMap(({ record }) => record ?? [])
}

/** The topmost mount is the one the record speaks of. */
export function isOurs(
  record: MountRecord | undefined,
  { mounted, boot }: { mounted: MountedView | 'broken' | undefined; boot: string },
): record is MountRecord {
  if (record?.mounted === undefined || mounted === undefined || mounted === 'broken') return false
  return record.boot === boot && record.mounted.mountId === String(mounted.mountId)
}
