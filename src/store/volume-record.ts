import * as z from 'zod/mini'
import type { Handle, Host, Stat } from '../host/host.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { sourceText } from '../request/source.ts'
import { RECORD_FILE } from './places.ts'
import { OF_A_VOLUME, RecordKind } from './record.ts'

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

/** Names a volume across reboots and whatever path leads to it: file system id, root inode, birth time. */
export function volumeIdentity(host: Host, root: Handle, stat: Stat): string {
  return `${host.inodes.fileSystemId(root)}-${stat.inode.toString(16)}-${stat.born.toString(16)}`
}

/** Names a volume whose root says nothing about it (a server's, a daemon's): the same request has the same volume. */
export function textIdentity({ fsType, source, subPath }: Pick<MountRequest, 'fsType' | 'source' | 'subPath'>): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256')
    .update([fsType, sourceText(source) ?? '', subPath ?? ''].join('\0'))
    .digest('hex')
  return `text-${digest.slice(0, 40)}`
}

/** Whether a volume is named by a text: no path of the node leads to it. */
export function isTextIdentity(volume: string): boolean {
  return volume.startsWith('text-')
}
