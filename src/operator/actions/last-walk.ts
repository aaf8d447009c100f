import type { VolumeRecord } from '../../store/volume-record.ts'

/** The recorded state of a volume's last walk, as documents show it. */
export type LastWalk = Pick<VolumeRecord, 'group' | 'groupAccess' | 'complete' | 'restorePending'> & {
  /** Inodes that a later restore skipped because users had changed them; null: no restore was completed. */
  left: number | null
}

export function extractLastWalk({ group, groupAccess, complete, left, restorePending }: VolumeRecord): LastWalk {
  return { group, groupAccess, complete, left: left ?? null, restorePending }
}
