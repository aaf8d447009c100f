import * as z from 'zod/mini'
import type { MountRequest } from '../request/mount-request.ts'
import { formatSource } from '../request/source.ts'
import { RECORD_FILE, type Store } from './places.ts'
import { OF_A_VOLUME, RecordKind } from './record.ts'
import { skippedInodesSchema } from './skipped-inodes.ts'

export const volumeRecordSchema = () =>
  z.object({
    volume: z.string(),
    source: z.string(),
    group: z.number(),
    groupAccess: z.enum(['keep', 'grant']),
    /** False from before the first change of a walk or a restore until the last: a tree half way is walked again. */
    complete: z.boolean(),
    /** With `complete` false: its walk came to its end, but may have passed over directories that were moved meanwhile. */
    hasEnded: z.optional(z.boolean()),
    /** How many inodes its last walk left as others had changed them since an earlier walk, and whether its root is one. */
    changedSince: z.optional(z.object({ inodes: z.number(), hasRoot: z.boolean() })),
    /** What its last walk skipped. Records of earlier versions have none. */
    skipped: z.optional(skippedInodesSchema()),
    /**
     * With `complete` false: a restore put all of it back but for so many inodes that its users had changed. Those stay
     * recorded, and what is not in the volume any more: nobody knows whether it comes back.
     */
    left: z.optional(z.number()),
    /** What the last `apply` by hand applied. restoreOnUnmount returns to what it left; a restore by hand drops it. */
    baseline: z.optional(z.object({ group: z.number(), groupAccess: z.enum(['keep', 'grant']) })),
    /** A pod asked for restoreOnUnmount: the last unmount restores the volume, whichever pod's it is. */
    restorePending: z.boolean(),
    /** What the volume lay on when it was walked last; undefined: not known. Records of before have none. */
    disk: z.optional(z.object({ shown: z.string(), identities: z.array(z.string()) })),
    /** The path that a pod named, where a part of a source was walked: not `source` if links led on from there. */
    asked: z.optional(z.string()),
  })

/** What a walk has made of a volume. */
export type VolumeRecord = z.infer<ReturnType<typeof volumeRecordSchema>>

/** It is written in the files of exported journals too. */
export const VOLUME_RECORD_FORMAT = 2

export const volumeRecords = new RecordKind<VolumeRecord>({
  format: VOLUME_RECORD_FORMAT,
  schema: volumeRecordSchema,
  ...OF_A_VOLUME,
  name: RECORD_FILE,
})

/** Whether the last unmount of this volume is to put it back. A record that cannot be read asks for nothing. */
export const awaitsRestore = (store: Store, volume: string | undefined): boolean =>
  volume !== undefined && volumeRecords.find(store, volume).record?.restorePending === true

/** False where a walk or a restore was not finished. Of a damaged record nobody knows how far one has come. */
export function hasOneGroup(store: Store, volume: string): boolean {
  if (!volumeRecords.has(store, volume)) return true
  const record = volumeRecords.readUnlessDamaged(store, volume)
  return record !== undefined && (record.complete || record.left !== undefined)
}

/** What a restore has left, and what to do about it; undefined where that is nothing. @param isForced it was told to leave nothing */
export function leftBy(
  { volume, left = 0 }: Pick<VolumeRecord, 'volume' | 'left'>,
  isForced = false,
): string | undefined {
  if (left === 0) return undefined
  return isForced
    ? `${left} of its files and directories stay as their users changed them, as they may be others than those recorded: "modekeep gc --forget ${volume}" leaves them so for good`
    : `${left} of its files and directories stay as their users changed them: "modekeep restore ${volume} --force" puts them back too, "modekeep gc --forget ${volume}" leaves them so for good`
}

/** So many a user may have meant; more are another's doing, such as `chgrp -R`. */
const FEW = 10

/** What to do where others changed so much of a volume since it was walked that its group may not get in. */
export function changeOf(record: VolumeRecord): string | undefined {
  const { changedSince, group } = record
  if (changedSince === undefined || (!changedSince.hasRoot && changedSince.inodes <= FEW)) return undefined
  const { inodes, hasRoot } = changedSince
  const which = `${hasRoot ? 'its root, among ' : ''}${inodes} of its files and directories`
  return `somebody changed ${which} since modekeep gave them group ${group}, and modekeep left them so: ${howToGive(record)} gives them to the group again`
}

/** @returns the command that gives a volume to a group, whatever its users changed since */
export function howToGive({
  volume,
  source,
  group,
  groupAccess,
}: Pick<VolumeRecord, 'volume' | 'source' | 'group' | 'groupAccess'>): string {
  // By its directory a server's volume is another one, with other records.
  if (isTextIdentity(volume)) return `"chgrp ${group}" of its root, where ${source} is mounted,`
  const command = `modekeep apply DIR --fsgroup ${group}${groupAccess === 'grant' ? ' --group-access grant' : ''} --force`
  return `"${command}", DIR being ${source} or where that is mounted,`
}

/** Names a volume whose root says nothing about it (a server's, a daemon's): the same request has the same volume. */
export function textIdentity({ fsType, source, subPath }: Pick<MountRequest, 'fsType' | 'source' | 'subPath'>): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256')
    .update([fsType, formatSource(source) ?? '', subPath ?? ''].join('\0'))
    .digest('hex')
  return `text-${digest.slice(0, 40)}`
}

// include/uapi/linux/magic.h
const XFS = '58465342.'

/** Whether f_fsid names a volume by the number of its device, as on xfs. A new UUID does not change that name. */
export const isNamedByDevice = (volume: string): boolean => volume.startsWith(XFS)

/** Whether a volume is named by a text: no path of the node leads to it. */
export function isTextIdentity(volume: string): boolean {
  return volume.startsWith('text-')
}
