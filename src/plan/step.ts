import type { MountRequest } from '../protocol/request.ts'
import type { MountRecord } from '../state/mount-record.ts'

type GroupAccess = MountRequest['groupAccess']

/** One effect. `undo` names its inverse, run in reverse order when a later step fails. */
export type Step =
  | { do: 'record'; record: MountRecord; undo: { restore: MountRecord | undefined } }
  | { do: 'make-tree'; undo: 'close-tree' }
  | { do: 'set-flags'; set: number; clear: number }
  | { do: 'own-root'; group: number; access: GroupAccess }
  | { do: 'own-volume'; group: number; access: GroupAccess; volume: string; policy: 'OnRootMismatch' | 'Always' }
  /** The record says ready before anything is attached: a ready record without its mount is harmless, the reverse is not. */
  | { do: 'record-ready'; record: MountRecord; undo: { restore: MountRecord | undefined } }
  | { do: 'attach'; undo: 'detach' }
  /** Puts the new mount in the place of what is there, without a moment of nothing where the kernel can. */
  | { do: 'replace' }
  | { do: 'detach-all' }
  | { do: 'restore-volume'; volume: string; source: string }
  | { do: 'forget' }
