import type { Level } from '../log/call-log.ts'

/** The node's configuration, every key present. Paths are absolute. */
export interface NodeConfig {
  stateDir: string
  logFile: string
  logLevel: Level
  /** Prefixes below which a source may lie: absolute paths on the node, //server/share and host:/export. */
  allowedSources: readonly string[]
  allowedFsTypes: readonly string[]
  /** For each fsType named here, the mount options a pod may use instead of the kind's own list. */
  allowedMountOptions: Readonly<Record<string, readonly string[]>>
  helperTimeoutSeconds: number
  capabilities: { selinuxRelabel: boolean; supportsMetrics: boolean }
}

/** Deny by default: a bind source is a hostPath in disguise. No relabel: it is a second walk that widens access. */
export const DEFAULT_CONFIG: NodeConfig = {
  stateDir: '/var/lib/modekeep',
  logFile: '/var/log/modekeep/modekeep.log',
  logLevel: 'info',
  allowedSources: ['/var/lib/modekeep/volumes'],
  allowedFsTypes: ['bind', 'tmpfs'],
  allowedMountOptions: {},
  helperTimeoutSeconds: 60,
  capabilities: { selinuxRelabel: false, supportsMetrics: true },
}

/**
 * The directories of stateDir that no pod may mount: records of mounts, of what walks changed, and what is just being
 * made. By default pods' own sources lie beside them, in `volumes`.
 */
export const PRIVATE = { mounts: 'mounts', ownership: 'ownership', staging: 'staging' } as const
