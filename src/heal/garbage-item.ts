/** Something in the state directory, and what becomes of it. */
export interface GarbageItem {
  kind: 'mount record' | 'lock' | 'volume' | 'reservation' | 'stage'
  /** A mount directory, or the path of its place where that has no whole name; a volume's identity; a stage. */
  name: string
  action: 'removed' | 'would remove' | 'kept' | 'failed'
  reason: string
}

export interface GarbageOrder {
  isDry: boolean
  /** A volume that is to be given up; its directory is not there. */
  forget: string | undefined
}

export function failed(kind: GarbageItem['kind'], name: string, error: unknown): GarbageItem {
  return { kind, name, action: 'failed', reason: error instanceof Error ? error.message : String(error) }
}
