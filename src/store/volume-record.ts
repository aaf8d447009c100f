import * as z from 'zod/mini'
import type { Handle, Host, Stat } from '../host/host.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { sourceText } from '../request/source.ts'
import { damagedRecord, problemOf, type RecordForm, readRecord, writeRecord } from './json-record.ts'
import { RECORD_FILE, volumeStateDirectory, volumesDirectory } from './paths.ts'

const schema = z.object({
  volume: z.string(),
  source: z.string(),
  group: z.number(),
  groupAccess: z.enum(['keep', 'grant']),
  /** False from before the first change of a walk or a restore until the last: a tree half way is walked again. */
  complete: z.boolean(),
  /** A pod asked for restoreOnUnmount: the last unmount restores the volume, whichever pod's it is. */
  restorePending: z.boolean(),
  /** The path that a pod named, where a part of a source was walked: another than `source` if links led on from there. */
  asked: z.optional(z.string()),
})

/** What a walk has made of a volume. */
export type VolumeRecord = z.infer<typeof schema>

const FORM: RecordForm<VolumeRecord> = { format: 2, schema }

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

/** Undefined where there is none. @throws as `readRecord` does */
export function readVolumeRecord(host: Host, stateDir: string, volume: string): VolumeRecord | undefined {
  const path = recordFile(stateDir, volume)
  const record = readRecord(host, path, FORM)
  if (record !== undefined && record.volume !== volume) throw damagedRecord(path)
  return record
}

/** Whether there is one, also where nobody can tell what it says. */
export function hasVolumeRecord(host: Host, stateDir: string, volume: string): boolean {
  return host.files.list(volumeStateDirectory(stateDir, volume)).includes(RECORD_FILE)
}

/** Why a volume's record cannot be read; undefined where it can, or there is none. */
export function volumeRecordProblem(host: Host, stateDir: string, volume: string): ReturnType<typeof problemOf> {
  return problemOf(() => readVolumeRecord(host, stateDir, volume))
}

export function writeVolumeRecord(host: Host, stateDir: string, record: VolumeRecord): void {
  host.files.makeDirectory(volumeStateDirectory(stateDir, record.volume))
  writeRecord(host, recordFile(stateDir, record.volume), FORM, record)
}

function recordFile(stateDir: string, volume: string): string {
  return `${volumeStateDirectory(stateDir, volume)}/${RECORD_FILE}`
}

/** Whether it is the name of a volume, of either form. Never a path. */
export function isVolumeIdentity(text: string): boolean {
  return /^(text-[0-9a-f]{40}|[0-9a-f.]+-[0-9a-f]+-[0-9a-f]+)$/.test(text)
}

/** Every volume that has a directory, whatever is in it. What people have put beside them is passed over. */
export function listVolumes(host: Host, stateDir: string): string[] {
  return host.files.list(volumesDirectory(stateDir)).filter(isVolumeIdentity).sort()
}

export function removeVolumeRecord(host: Host, stateDir: string, volume: string): void {
  host.files.remove(recordFile(stateDir, volume))
}
