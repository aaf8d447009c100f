import type { PackedFrames } from './frames.ts'
import type { Boundary } from './traverse.ts'

export interface WalkSettings {
  inside: Boundary
  /** Stops after so many inodes: the rest is to be handed on. */
  stopAfter?: number
  /** Other threads that may be in want of work. */
  others?: Others
  /** Called after every batch. */
  onBatch?: () => void
}

export interface Others {
  wantWork(): boolean
  take(part: PackedFrames): void
}
