import type { LogLevel } from '../log/call-log.ts'
import { DEFAULT_MAP_RULES, type MapRule } from './map-rule.ts'
import { type AllowRule, DEFAULT_ALLOW_RULES } from './rule.ts'

/** The node's configuration with every key present. Paths are absolute. */
export interface NodeConfig {
  stateDir: string
  logFile: string
  logLevel: LogLevel
  /** Rules of mount requests: the first rule that matches decides. */
  allow: readonly AllowRule[]
  /** Rules that let pods map volumes of other drivers to a group: one matching rule is enough. */
  map: readonly MapRule[]
  /** Size of a tmpfs whose pod names none, and the largest that a pod may name: see parseSize. */
  tmpfsMaxSize: string
  helperTimeoutSeconds: number
  /** Time for which an unmount fails while the file system of its disk or image is in use. */
  busyUnmountSeconds: number
  /** Maximum bytes of the journal of one volume. */
  stateQuota: number
  capabilities: { selinuxRelabel: boolean; supportsMetrics: boolean }
  /** Set by an administrator where the CSI server cannot read that the CSIDriver object says podInfoOnMount: true. */
  csiPodInfoOnMount: boolean
}

export type LoadedConfig = NodeConfig & { configFile?: string | undefined }

/** SELinux relabeling is off, because it is a second walk that widens access. */
export const DEFAULT_CONFIG: NodeConfig = {
  stateDir: '/var/lib/modekeep',
  logFile: '/var/log/modekeep/modekeep.log',
  logLevel: 'info',
  allow: DEFAULT_ALLOW_RULES,
  map: DEFAULT_MAP_RULES,
  tmpfsMaxSize: '64m',
  helperTimeoutSeconds: 60,
  busyUnmountSeconds: 60,
  stateQuota: 2 ** 30,
  capabilities: { selinuxRelabel: false, supportsMetrics: true },
  csiPodInfoOnMount: false,
}

/**
 * Directories of stateDir that no pod may mount: records of mounts, journals, running calls, containers with their
 * initial mounts, and staging mounts. The default directory of pods' own sources is next to them, `volumes`.
 */
export const PRIVATE_STATE_DIRECTORIES = {
  mounts: 'mounts',
  ownership: 'ownership',
  reservations: 'reservations',
  publications: 'publications',
  staging: 'staging',
  containers: 'nri',
  rootBits: 'root-bits',
} as const

const SIZE_UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }

/**
 * Parses a number with an optional suffix k, m or g (powers of 1,024), as tmpfs(5) and most mount options do. Returns
 * undefined for any other text.
 */
export function parseSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^([1-9][0-9]{0,14})([kmg]?)$/i.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (SIZE_UNIT_BYTES[unit.toLowerCase()] ?? 1)
}
