import type { MountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import {
  explainChanges,
  formatApplyCommand,
  formatSkipped,
  hasRejected,
  type VolumeRecord,
  volumeRecords,
} from '../store/volume-record.ts'

/**
 * Finds a change of a walked volume that others made since its group was applied.
 * @param walked the record if it was read already; undefined while a call uses the volume
 */
export function findVolumeChange(
  session: Session,
  { given, volume }: MountRecord,
  walked: VolumeRecord | undefined,
): string | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  const record = walked ?? volumeRecords.find(session, volume).record
  return record && explainChanges(record)
}

/** Explains why the volume's root, or other inodes, do not have the pod's group. */
export function explainPartialGroup(
  session: Session,
  { given, volume, source = '' }: MountRecord,
  walked: VolumeRecord | undefined,
  rootGroup: number | undefined,
): string | undefined {
  if (given.by !== 'walk' || volume === undefined) return undefined
  const record = walked ?? volumeRecords.find(session, volume).record
  const { skipped, groupAccess = 'keep' } = record ?? {}
  const { group } = given
  const isRootOther = rootGroup !== undefined && rootGroup !== group
  const facts = [
    ...(isRootOther ? [`the root of ${source} has group ${rootGroup} and not ${group}, which modekeep applied`] : []),
    ...(skipped && hasRejected(skipped) ? [formatSkipped(group, skipped)] : []),
  ]
  if (facts.length === 0) return undefined
  return `${facts.join('; ')}: remove the cause, then ${formatApplyCommand({ volume, source, group, groupAccess })} applies the group again`
}
