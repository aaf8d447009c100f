import type { MapStep, WalkStep } from '../fs-group/decide.ts'
import type { MountRecord } from '../store/mount-record.ts'

/** One effect of a mount plan. `undo` names its inverse, which runs, latest first, when a later step fails. */
export type Step =
  | { do: 'record'; record: MountRecord; undo: RecordUndo }
  /** @property group given by the kind's own mount options */
  | { do: 'make-tree'; group: number | undefined; undo: 'close-tree' }
  | { do: 'set-flags'; set: number; clear: number }
  | WalkStep
  | MapStep
  /** The record says ready before anything is attached: a ready record without its mount is harmless, the reverse is not. */
  | { do: 'record-ready'; record: MountRecord; undo: RecordUndo }
  /** A mount lies on a thing of its root's type. Kubelet made a directory, and wants one back. */
  | { do: 'set-target'; type: 'directory' | 'file'; undo: 'directory-target' }
  /** Beneath what a daemon serves: see guard.ts. */
  | { do: 'guard' }
  /** Of daemons whose mounts were replaced, those that would stay for ever. */
  | { do: 'end-daemons' }
  | { do: 'attach'; undo: 'detach' }
  /** Puts the new mount in the place of what is there, without a moment of nothing where the kernel can. */
  | { do: 'replace' }
  | { do: 'detach-all'; undo: 'old-mount' }

/** The steps that have an inverse. */
export type Undoable = Extract<Step, { undo: unknown }>

/** The record that was there before; undefined: none was, and nothing is to be left of the volume. */
type RecordUndo = { restore: MountRecord | undefined }
