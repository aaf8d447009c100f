import type { Level } from '../log/call-log.ts'
import { DEFAULT_MAP_RULES, type MapRule } from './map-rule.ts'
import { DEFAULT_RULES, type Rule } from './rule.ts'

/** The node's configuration, every key present. Paths are absolute. */
export interface NodeConfig {
  stateDir: string
  logFile: string
  logLevel: Level
  /** Who may have what: the first rule that matches decides. */
  allow: readonly Rule[]
  /** Who may have volumes of other drivers shown to a group of its pod: one rule that allows it is enough. */
  map: readonly MapRule[]
  /** What a tmpfs has where its pod names no size, and the most that it may name: see sizeOf. */
  tmpfsMaxSize: string
  helperTimeoutSeconds: number
  /** How long an unmount fails while the file system of its disk or image is in use. */
  busyUnmountSeconds: number
  /** The most bytes that is kept of what walks have changed of one volume. */
  stateQuota: number
  capabilities: { selinuxRelabel: boolean; supportsMetrics: boolean }
  /** An administrator states that the CSIDriver object says podInfoOnMount: true, where the CSI server cannot read it. */
  csiPodInfoOnMount: boolean
}

/** A configuration, with the file that it was read from. */
export type LoadedConfig = NodeConfig & { configFile?: string | undefined }

/** No relabel: it is a second walk that widens access. */
export const DEFAULT_CONFIG: NodeConfig = {
  stateDir: '/var/lib/modekeep',
  logFile: '/var/log/modekeep/modekeep.log',
  logLevel: 'info',
  allow: DEFAULT_RULES,
  map: DEFAULT_MAP_RULES,
  tmpfsMaxSize: '64m',
  helperTimeoutSeconds: 60,
  busyUnmountSeconds: 60,
  stateQuota: 2 ** 30,
  capabilities: { selinuxRelabel: false, supportsMetrics: true },
  csiPodInfoOnMount: false,
}

/**
 * The directories of stateDir that no pod may mount: records of mounts, of what walks changed, of calls at work, of
 * containers and the mounts they start with, and what is just being made. By default pods' own sources lie beside them, in `volumes`.
 */
export const PRIVATE = {
  mounts: 'mounts',
  ownership: 'ownership',
  reservations: 'reservations',
  publications: 'publications',
  staging: 'staging',
  containers: 'nri',
  rootBits: 'root-bits',
} as const
