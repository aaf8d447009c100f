import type { VolumeRecord } from '../../store/volume-record.ts'

/** What the record of a volume says of the last walk, as documents show it. */
export type LastWalk = Pick<VolumeRecord, 'group' | 'groupAccess' | 'complete' | 'restorePending'> & {
  /** How many inodes a restore after it left as their users had changed them; null: none has come to its end. */
  left: number | null
}

export function extractLastWalk({ group, groupAccess, complete, left, restorePending }: VolumeRecord): LastWalk {
  return { group, groupAccess, complete, left: left ?? null, restorePending }
}
