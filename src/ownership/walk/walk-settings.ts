import type { PackedFrames } from './frames.ts'
import type { BatchSettings } from './pipeline.ts'
import type { Boundary } from './traverse.ts'

export interface WalkSettings extends BatchSettings {
  inside: Boundary
  /** Stops after so many inodes: the rest is to be handed on. */
  stopAfter?: number
  /** Other threads that may be in want of work. */
  others?: Others
}

export interface Others {
  wantWork(): boolean
  take(part: PackedFrames): void
}
