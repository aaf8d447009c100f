import * as z from 'zod/mini'
import {
  createRecordedRequestSchema,
  fromRecordedRequest,
  type MountRequest,
  toRecordedRequest,
} from '../config/mount-request.ts'
import { CSI_LIFECYCLES } from '../config/rule.ts'
import { createSecretKeysSchema } from '../config/rule-schema.ts'
import { formatSource } from '../config/source.ts'
import { type ProcessId, tolerateErrno } from '../kernel/host.ts'
import { isModekeepVolumeDirectory, parsePodVolume } from '../kernel/mount-table/kubelet-volume.ts'
import type { TopmostMount } from '../kernel/mount-table/mount-point.ts'
import type { MountRow } from '../kernel/mount-table/mountinfo.ts'
import { RecordKind, type RecordReadResult } from './record.ts'
import { listMountRecordDirectories, locateMountRecords, RECORD_FILE, type Store } from './record-directories.ts'
import { isVolumeAwaitingRestore } from './volume-record.ts'

function mountRecordSchema() {
  const text = z.string()
  const optional = z.optional(text)
  const number = z.number()
  /** Method by which the group was applied, with the reason in words for operators. */
  const given = z.discriminatedUnion('by', [
    z.object({ by: z.literal('none'), why: optional }),
    /** `skipped`: which inodes the walk skipped, in words. */
    z.object({ by: z.literal('walk'), group: number, why: text, skipped: optional }),
    /** `from`: the group on disk, which the mount shows as another. */
    z.object({ by: z.literal('idmap'), from: number, why: text, hasPlainRoot: z.optional(z.boolean()) }),
    z.object({ by: z.literal('option'), why: text }),
  ])

  return z.object({
    /** Boot id of the node when the mount was made: mount ids are not valid in another boot. */
    boot: text,
    directory: text,
    pod: optional,
    /** Namespace of the pod. Records of earlier versions have none. */
    namespace: optional,
    /** Lifecycle of a CSI volume. */
    lifecycle: z.optional(z.enum(CSI_LIFECYCLES)),
    /** Publication of a CSI volume. Records of earlier versions have none. */
    publication: z.optional(z.object({ volumeId: text, isSingleWriter: z.boolean() })),
    /** `setGid` of the rule that allowed the mount; undefined: true. */
    setGid: z.optional(z.boolean()),
    /** `systemGroups` and `protectedGroups` of that rule. */
    systemGroups: z.optional(z.boolean()),
    protectedGroups: z.optional(z.array(text)),
    /** Form in which that rule passes the keys of the Secret to a FUSE program. */
    secretKeys: z.optional(createSecretKeysSchema()),
    request: createRecordedRequestSchema(),
    /** Source path at mount time; with a subPath, below the request's source. Undefined: it has none. */
    source: optional,
    /** Distinguishes the source from others of its name; undefined if the inode of its root does. */
    identity: optional,
    /** Identity of the volume; undefined if the volume ends with its mount. */
    volume: optional,
    given,
    /** Names the mounts inside the source that the pod did not see at mount time; undefined: there were none. */
    hiddenSubmounts: optional,
    /** The complete mount; undefined: a call is making it, or was interrupted. */
    mounted: z.optional(
      z.object({
        /** Decimal, because it has 64 bits. */
        mountId: text,
        device: number,
        /** Mount namespace of the mount: its mount id is not valid in another. */
        namespace: text,
        /** Milliseconds since 1970. */
        since: number,
        /** Devices of its file system, named as in `BlockDeviceOperations`; undefined: none, or an earlier version's record. */
        devices: z.optional(z.array(text)),
        /** The id of the mount in the mount table, for a volume that has a file system of its own. */
        tableId: z.optional(number),
        /** As in `MountedFileSystem`; undefined: it was not unmounted in use, or by an earlier version. */
        copyNamespaces: z.optional(z.array(text)),
      }),
    ),
    /** The mount that this one replaced or is about to replace, with the staging directory of its daemon. */
    replaces: z.optional(z.object({ mountId: text, staging: optional })),
    /** Staging directory that the daemon was started with, which identifies the daemon. */
    staging: optional,
    /** Staging directories of daemons whose mounts it replaced. Each daemon ends with its last user. */
    replacedDaemons: z.array(text),
    /**
     * Processes that were started with a staging directory and ran when its mount was ready. No other process is its
     * daemon, even with the same arguments. Records of earlier versions have none: each process with the mark counts.
     */
    daemons: z.optional(
      z.array(z.object({ staging: text, processes: z.array(z.object({ pid: number, start: text })) })),
    ),
    /** The pod gave secrets, which are never stored: only a call that brings them can remount the volume. */
    hadSecrets: z.boolean(),
    /**
     * The volume is unmounted, but the pod's directory has remains that kubelet cannot remove, or its file system is
     * still in use.
     * `pod gone`: heal unmounted it instead of kubelet, and must remove the volume's own directory too.
     */
    ended: z.optional(z.enum(['unmounted', 'pod gone'])),
    /** Time when an unmount first found its file system busy, in milliseconds of this boot's monotonic clock. */
    busySince: z.optional(number),
  })
}

/** The record of one mount directory. `unmount` gets no options, so it depends on the record. */
export type MountRecord = z.infer<ReturnType<typeof mountRecordSchema>>

/** A mount without a record is not modekeep's. */
export const mountRecords = new RecordKind<MountRecord>({
  format: 2,
  schema: mountRecordSchema,
  ownerOf: ({ directory }) => directory,
  locate: (store, directory) => `${locateMountRecords(store, directory).path}/${RECORD_FILE}`,
  isOfThisBoot: ({ request, volume }, store) => !request.restoreOnUnmount && !isVolumeAwaitingRestore(store, volume),
  isSweptAfterReboot: true,
})

/** The recorded `why` of a method that the pod requested. */
export const REQUESTED_METHOD_REASON = 'asked for'

/** The recorded group of a mount, with the method by which it was applied. */
export type AppliedGroup = MountRecord['given']

/** Properties of a request that the rules permitting it determine. */
export type RequestRuleFacts = Pick<MountRequest, 'systemGroups' | 'protectedGroups' | 'secretKeys'> & {
  setGid?: boolean | undefined
}

/** The source as a record keeps it. An identity that only the mount shows is added when the mount is made. */
export interface SourceFacts {
  identity?: string | undefined
  volume: string | undefined
  path: string
}

/** Creates the record of a mount that is not made yet. */
export function createMountRecord(request: MountRequest, boot: string, source: SourceFacts | undefined): MountRecord {
  const { directory, pod, namespace, lifecycle, publication } = request
  return {
    ...{ boot, directory, pod, namespace, lifecycle, publication },
    setGid: request.fsGroup.setGid,
    systemGroups: request.systemGroups,
    protectedGroups: request.protectedGroups && [...request.protectedGroups],
    secretKeys: request.secretKeys,
    request: toRecordedRequest(request),
    source: source?.path ?? formatSource(request.source),
    identity: source?.identity,
    volume: source?.volume,
    given: { by: 'none' },
    replacedDaemons: [],
    hadSecrets: false,
  }
}

/** Rebuilds the request that a record was made for. */
export function rebuildMountRequest(record: MountRecord): MountRequest {
  const { request, directory, pod, namespace, lifecycle, publication } = record
  const { setGid, systemGroups, protectedGroups, secretKeys } = record
  const facts = { systemGroups, protectedGroups, secretKeys }
  return { ...fromRecordedRequest(request, setGid), directory, pod, namespace, lifecycle, publication, ...facts }
}

/** Adds the properties that rules determine, from a rule or from a record. */
export function applyRuleFacts(
  request: MountRequest,
  { setGid, systemGroups, protectedGroups, secretKeys }: RequestRuleFacts,
): MountRequest {
  return { ...request, fsGroup: { ...request.fsGroup, setGid }, systemGroups, protectedGroups, secretKeys }
}

/**
 * Finds the staging directory of the daemon that serves the current mount. Returns undefined if no daemon does, or the
 * record is of other mounts.
 */
export function findDaemonStagingDirectory(
  { mounted, staging, replaces }: MountRecord,
  there: bigint | number,
): string | undefined {
  if (String(there) === mounted?.mountId) return staging
  // A call is about to replace the mount, or was interrupted before it did.
  return String(there) === replaces?.mountId ? replaces.staging : undefined
}

/** Returns the processes of a daemon when its mount was ready; undefined if they are not recorded. */
export function findDaemonProcesses(
  { daemons }: Pick<MountRecord, 'daemons'>,
  staging: string,
): ProcessId[] | undefined {
  return daemons?.find((daemon) => daemon.staging === staging)?.processes
}

/** Lists all mount directories that have a record, of any boot. */
export function listRecordedMounts(store: Store): ({ directory: string } & RecordReadResult<MountRecord>)[] {
  return listMountRecordDirectories(store)
    .filter(({ hasRecord, directory }) => hasRecord && directory !== '')
    .map(({ directory }) => ({ directory, ...mountRecords.find(store, directory) }))
    .filter(({ record, problem }) => record ?? problem)
}

/** Lists those of the directories that have a record. The cost does not depend on how many are recorded. */
export function findRecordedMounts(store: Store, directories: Iterable<string>): ReturnType<typeof listRecordedMounts> {
  return [...directories].flatMap((directory) => {
    const found = tolerateErrno('ENAMETOOLONG', () => mountRecords.find(store, directory)) ?? {}
    return (found.record ?? found.problem) ? [{ directory, ...found }] : []
  })
}

/** Returns whether a mount has a record, readable or not. A record whose path would be too long does not exist. */
export function hasMountRecord(store: Store, directory: string): boolean {
  const path = `${locateMountRecords(store, directory).path}/${RECORD_FILE}`
  return tolerateErrno('ENAMETOOLONG', () => store.host.files.has(path)) ?? false
}

/** Lists the records that can be read. */
export function listReadableMountRecords(store: Store): MountRecord[] {
  return listRecordedMounts(store).flatMap(({ record }) => record ?? [])
}

/** Returns whether the topmost mount is the recorded one. */
export function isRecordedMount(
  record: MountRecord | undefined,
  { mounted, boot }: { mounted: TopmostMount | 'broken' | undefined; boot: string },
): record is MountRecord {
  if (record?.mounted === undefined || mounted === undefined || mounted === 'broken') return false
  return record.boot === boot && record.mounted.mountId === String(mounted.mountId)
}

/**
 * Lists the mounts that are modekeep's according to kubelet's directories and have no record. The record was lost, and
 * with it the group that the pod relies on. If kubelet's directory is bind-mounted, each mount has a second mount
 * point, which is not listed.
 * @param matters filters the mount points before a file is read to find out which driver mounted them
 * @returns mount points; a mount may have been unmounted, and its record removed, after the table was read
 */
export function listUnrecordedMounts(
  store: Store,
  table: readonly MountRow[],
  matters: (mountPoint: string) => boolean = () => true,
  directoriesWithRecord: ReadonlySet<string> = new Set(),
): string[] {
  const places = new Set(
    table.map(({ mountPoint }) => mountPoint).filter((place) => parsePodVolume(place) !== undefined),
  )
  const hasRecord = (place: string) => directoriesWithRecord.has(place) || hasMountRecord(store, place)
  const recorded = new Set([...places].filter(hasRecord).map(parsePodVolume))
  return [...places].filter(
    (place) => !recorded.has(parsePodVolume(place)) && matters(place) && isModekeepVolumeDirectory(store.host, place),
  )
}
