import * as z from 'zod/mini'
import { PRIVATE_STATE_DIRECTORIES } from '../config/defaults.ts'
import type { SkipReason, WalkReport } from '../ownership/walk/report.ts'
import { RecordKind, type RecordOfKind } from './record.ts'
import { locateVolumeRecords, RECORD_FILE, type Store } from './record-directories.ts'
import { isTextVolumeId, isVolumeId } from './volume-id.ts'

export const volumeRecordSchema = () =>
  z.object({
    volume: z.string(),
    source: z.string(),
    group: z.number(),
    groupAccess: z.enum(['keep', 'grant']),
    /** False from before the first change of a walk or a restore until after the last. Such a tree is walked again. */
    complete: z.boolean(),
    /** The walk ended, but may have missed directories that were moved meanwhile. Set only if `complete` is false. */
    hasEnded: z.optional(z.boolean()),
    /** Inodes that the last walk skipped, because they were changed since an earlier one. */
    changedSince: z.optional(z.object({ inodes: z.number(), hasRoot: z.boolean() })),
    /** Inodes that the last walk skipped. Records of earlier versions have none. */
    skipped: z.optional(skippedInodesSchema()),
    /**
     * Number of inodes that a restore skipped, because users had changed them. Set only if `complete` is false. The
     * skipped ones stay recorded. So do inodes that are not in the volume any more, because they may return.
     */
    left: z.optional(z.number()),
    /** Result of the last `apply` by hand. restoreOnUnmount returns to that state; a restore by hand removes it. */
    baseline: z.optional(z.object({ group: z.number(), groupAccess: z.enum(['keep', 'grant']) })),
    /** A pod requested restoreOnUnmount: the last unmount restores the volume, even if it is of another pod. */
    restorePending: z.boolean(),
    /** Disk of the volume at its last walk; undefined: unknown. Records of earlier versions have none. */
    disk: z.optional(z.object({ shown: z.string(), identities: z.array(z.string()) })),
    /** Path that a pod requested, if a part of a source was walked. Links may make it differ from `source`. */
    asked: z.optional(z.string()),
  })

/** State of a volume after its last walk. */
export type VolumeRecord = z.infer<ReturnType<typeof volumeRecordSchema>>

/** Format of volume records, which exported journals contain too. */
export const VOLUME_RECORD_FORMAT = 2

export const volumeRecords = new RecordKind<VolumeRecord>({
  format: VOLUME_RECORD_FORMAT,
  schema: volumeRecordSchema,
  ownerOf: ({ volume }) => volume,
  locate: (store, volume) => `${locateVolumeRecords(store, volume).path}/${RECORD_FILE}`,
  isSweptAfterReboot: true,
})

/** Returns whether the last unmount is to restore the volume. An unreadable record requests nothing. */
export const isVolumeAwaitingRestore = (store: Store, volume: string | undefined): boolean =>
  volume !== undefined && volumeRecords.find(store, volume).record?.restorePending === true

/** Explains how to treat inodes that a restore skipped; returns undefined if none. @param isForced it used --force */
export function explainUnrestoredInodes(
  { volume, left = 0 }: Pick<VolumeRecord, 'volume' | 'left'>,
  isForced = false,
): string | undefined {
  if (left === 0) return undefined
  return isForced
    ? `${left} of its files and directories stay as their users changed them, as they may be others than those recorded: "modekeep gc --forget ${volume}" leaves them so for good`
    : `${left} of its files and directories stay as their users changed them: "modekeep restore ${volume} --force" puts them back too, "modekeep gc --forget ${volume}" leaves them so for good`
}

/** Up to this number of inodes, a user may have intended the change. A command such as `chgrp -R` changes more. */
const MAX_INTENDED_CHANGES = 10

/** Explains what to do if so many inodes were changed since the walk that the group may lack access. */
export function explainUserChanges(record: VolumeRecord): string | undefined {
  const { changedSince, group } = record
  if (changedSince === undefined || (!changedSince.hasRoot && changedSince.inodes <= MAX_INTENDED_CHANGES))
    return undefined
  const { inodes, hasRoot } = changedSince
  const which = `${hasRoot ? 'its root, among ' : ''}${inodes} of its files and directories`
  return `somebody changed ${which} since modekeep gave them group ${group}, and modekeep left them so: ${formatApplyCommand(record)} gives them to the group again`
}

/** @returns the command that applies the group to the whole volume, including inodes that users changed since */
export function formatApplyCommand({
  volume,
  source,
  group,
  groupAccess,
}: Pick<VolumeRecord, 'volume' | 'source' | 'group' | 'groupAccess'>): string {
  // Under its directory, a server's volume has another identity and other records.
  if (isTextVolumeId(volume)) return `"chgrp ${group}" of its root, where ${source} is mounted,`
  const command = `modekeep apply DIR --fsgroup ${group}${groupAccess === 'grant' ? ' --group-access grant' : ''} --force`
  return `"${command}", DIR being ${source} or where that is mounted,`
}

const locateRootSetGidRecords = ({ config }: Pick<Store, 'config'>) =>
  `${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.rootBits}`

/**
 * A volume whose root had no set-gid bit before modekeep set it for a mapped mount. The record is durable before the
 * bit is set, and removed after the bit is removed. Both happen under the volume's lock.
 */
export const rootSetGidRecords = new RecordKind({
  format: 1,
  schema: () =>
    z.object({
      volume: z.string(),
      /** Path of the volume's root on the node, or the source as the request names it. */
      source: z.string(),
      /** Namespace and name of the pod that it was set for; undefined in records of earlier versions. */
      pod: z.optional(z.string()),
    }),
  ownerOf: ({ volume }) => volume,
  locate: (store, volume: string) => `${locateRootSetGidRecords(store)}/${volume}.json`,
})

export type RootSetGidRecord = RecordOfKind<typeof rootSetGidRecords>

/** Lists the volumes that have such a record. */
export function listRootSetGidVolumes(store: Store): string[] {
  const names = store.host.files.list(locateRootSetGidRecords(store)).filter((name) => name.endsWith('.json'))
  return names.map((name) => name.replace(/\.json$/, '')).filter(isVolumeId)
}

const skippedInodesSchema = () =>
  z.object({
    applied: z.number(),
    total: z.number(),
    /** The largest count first. */
    reasons: z.array(z.object({ reason: z.string(), count: z.number(), example: z.string() })),
  })

/** Number of inodes to which the last walk of a volume applied the group, and its reasons to skip others. */
export type SkippedInodes = z.infer<ReturnType<typeof skippedInodesSchema>>

/** A symbolic link has no access of its own, so the group does not concern it. */
const NO_ACCESS_SKIP_REASON: SkipReason = 'symlink'
/** The group was applied to these inodes. */
const LOST_PRIVILEGES_REASON: SkipReason = 'privileges not given back'
/** The kernel or the file system rejected the change, so the pod's group lacks access that it was promised. */
const REJECTED_CHANGE_REASONS: ReadonlySet<string> = new Set<SkipReason>([
  'immutable or append-only',
  'read-only',
  'over quota',
])

/** Returns undefined if the walk skipped nothing. */
export function countSkippedByReason({ changed, alreadyRight, left }: WalkReport): SkippedInodes | undefined {
  const reasons = Object.entries(left)
    .filter(([reason]) => reason !== NO_ACCESS_SKIP_REASON)
    .map(
      ([
        reason,
        {
          count,
          examples: [example = ''],
        },
      ]) => ({ reason, count, example }),
    )
    .sort((one, other) => other.count - one.count)
  if (reasons.length === 0) return undefined
  const applied = changed + alreadyRight
  const skipped = reasons.reduce((sum, { reason, count }) => (reason === LOST_PRIVILEGES_REASON ? sum : sum + count), 0)
  return { applied, total: applied + skipped, reasons }
}

/** Returns whether the kernel or the file system rejected the group of an inode. */
export const hasRejectedInodes = ({ reasons }: SkippedInodes): boolean =>
  reasons.some(({ reason }) => REJECTED_CHANGE_REASONS.has(reason))

export function formatSkippedByReason(group: number, { applied, total, reasons }: SkippedInodes): string {
  const skipped = reasons.map(({ reason, count, example }) => {
    const first = example === '' ? '' : ` (first ${JSON.stringify(example)})`
    return `${reason}: ${count}${first}`
  })
  return `group ${group} was applied to ${applied} of ${total}, ${skipped.join(', ')}`
}
