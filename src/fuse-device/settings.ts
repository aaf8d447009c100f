import type { Level } from '../log/call-log.ts'
import type { Timing } from './decide.ts'

export interface PluginTiming extends Timing {
  /** All in ms. Between two looks at the device and, should a change have been missed, at the directory. */
  readonly lookMs: number
  /** How long kubelet may take to answer a registration, and calls under way at the end. */
  readonly registerMs: number
  readonly drainMs: number
}

export const TIMING: PluginTiming = {
  firstMs: 500,
  mostMs: 30_000,
  graceMs: 30_000,
  lookMs: 10_000,
  registerMs: 10_000,
  drainMs: 2_000,
}

export interface Settings {
  /** Where kubelet.sock is. */
  readonly directory: string
  /** The device, on the node. */
  readonly device: string
  readonly count: number
  readonly timing: PluginTiming
  /** Monotonic, ms. */
  readonly now: () => number
  /** In [0, 1). */
  readonly random: () => number
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}
