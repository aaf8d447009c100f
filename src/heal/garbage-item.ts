import { messageOf } from '../refusal/refusal.ts'

/** Something in the state directory, and what becomes of it. */
export interface GarbageItem {
  kind: 'mount record' | 'lock' | 'volume' | 'reservation' | 'stage'
  /** A mount directory, or the path of its place where that has no whole name; a volume's identity; a stage. */
  name: string
  /** In a dry run: what would be done. */
  action: 'removed' | 'kept' | 'failed'
  reason: string
}

export interface GarbageOrder {
  isDry: boolean
  /** A volume that is to be given up; its directory is not there. */
  forget: string | undefined
}

/** What becomes of an item. */
export type Fate = Pick<GarbageItem, 'action' | 'reason'>

export const BUSY: Fate = { action: 'kept', reason: 'a call is at work on it' }
export const INTERRUPTED: Fate = { action: 'removed', reason: 'an interrupted call left it' }

export function failed(kind: GarbageItem['kind'], name: string, error: unknown): GarbageItem {
  return { kind, name, action: 'failed', reason: messageOf(error) }
}
