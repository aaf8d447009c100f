import { quoted } from '../refusal/refusal.ts'
import { isInRanges, matchesGlob } from './rule.ts'
import { holdsSource } from './rule-source.ts'
import type { SystemGroupRule } from './system-group-rule.ts'

/**
 * One rule of the node's configuration about volumes of other drivers: who may have them shown to a group of its pod. It
 * allows what every key that it has matches.
 */
export interface MapRule extends SystemGroupRule {
  /** Globs of namespaces: `team-*`. */
  namespaces?: readonly string[] | undefined
  /** Kinds of volume; left out: those of DEFAULT_MAP_VOLUMES. */
  volumes?: readonly string[] | undefined
  /** Paths of hostPath volumes, as holdsSource compares them. Left out: none. */
  sources?: readonly string[] | undefined
  /** Types of file systems; left out: those of DEFAULT_MAP_FS_TYPES. */
  fsTypes?: readonly string[] | undefined
  /** Numbers and ranges of groups that a pod may ask for. */
  groups?: readonly string[] | undefined
  /** The annotation for it may set the set-gid bit on the root of a volume. */
  setGid?: 'root' | undefined
}

/** What kubelet would walk, or could. A hostPath lets a group in where kubelet never does. */
export const DEFAULT_MAP_VOLUMES: readonly string[] = ['emptyDir', 'csi', 'local']

export const DEFAULT_MAP_FS_TYPES: readonly string[] = ['ext4', 'xfs', 'btrfs']

/** Those of a configuration that has none: told from written ones, as nobody wrote them. */
export const DEFAULT_MAP_RULES: readonly MapRule[] = [{}]

export const HOST_PATH = 'hostPath'

/** What a pod asks for. */
export interface MapWish {
  namespace: string
  /** Its kind: `emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, or kubelet's plugin: `kubernetes.io/nfs`. */
  kind: string
  /** As a message names it; of a hostPath its path. */
  volume: string
  group: number
}

/** What one rule of `map` permits on the file systems that it is for. In JSON it goes to another process. */
export interface MapRuleGrant extends SystemGroupRule {
  fsTypes: readonly string[]
  setGid?: 'root' | undefined
}

export interface MapGrant {
  fsTypes: readonly string[]
  /** Undefined: no rule has more than types of file systems. */
  grants?: readonly MapRuleGrant[] | undefined
}

const grantOf = ({ fsTypes = DEFAULT_MAP_FS_TYPES, setGid, systemGroups, protectedGroups }: MapRule): MapRuleGrant => ({
  fsTypes,
  setGid,
  systemGroups,
  protectedGroups,
})

/**
 * Whether some rule lets a pod have a volume shown to a group. Pure.
 * @returns the types of file systems that these rules are for, and what each of them permits, or a sentence with the way out
 */
export function mayMap(rules: readonly MapRule[], wish: MapWish): MapGrant | { refusal: string } {
  const { namespace, kind, volume, group } = wish
  const matching = rules.filter((rule) => objectionOf(rule, wish) === undefined)
  if (matching.length > 0) {
    const grants = matching.map(grantOf)
    const isPlain = grants.every(
      ({ setGid, systemGroups, protectedGroups }) => !setGid && !systemGroups && protectedGroups === undefined,
    )
    const fsTypes = [...new Set(grants.flatMap((grant) => grant.fsTypes))]
    return isPlain ? { fsTypes } : { fsTypes, grants }
  }
  const [why, wayOut] = rules === DEFAULT_MAP_RULES ? unlessWritten(wish) : unlessAdded(rules, wish)
  return {
    refusal: `namespace ${quoted(namespace)} may not have the ${kind} volume ${quoted(volume)} shown to group ${group} on this node: ${why}; its administrator can ${wayOut}`,
  }
}

function unlessWritten({ kind, volume }: MapWish): [why: string, wayOut: string] {
  const sources = kind === HOST_PATH ? `, "sources": [${quoted(volume)}]` : ''
  return [
    `without "map" in the node's modekeep configuration only ${DEFAULT_MAP_VOLUMES.join(', ')} volumes may be`,
    `write "map": [{}, {"volumes": [${quoted(kind)}]${sources}}] there, where {} keeps what is allowed without it`,
  ]
}

function unlessAdded(rules: readonly MapRule[], wish: MapWish): [why: string, wayOut: string] {
  const why = rules.map((rule, at) => `rule ${at + 1} is not for ${objectionOf(rule, wish)}`).slice(0, MOST_RULES)
  return [
    why.length === 0 ? 'it has no rule' : why.join('; '),
    'add a rule to "map" of the node\'s modekeep configuration',
  ]
}

const MOST_RULES = 5

function objectionOf(rule: MapRule, { namespace, kind, volume, group }: MapWish): string | undefined {
  const { namespaces, volumes = DEFAULT_MAP_VOLUMES, sources = [], groups } = rule
  if (!(namespaces?.some((glob) => matchesGlob(glob, namespace)) ?? true)) return 'this namespace'
  if (!volumes.includes(kind)) return `${kind} volumes`
  const source = { type: 'local', path: volume } as const
  if (kind === HOST_PATH && !sources.some((entry) => holdsSource(entry, source, namespace, 'bind'))) return 'this path'
  return groups !== undefined && !isInRanges(groups, group) ? `group ${group}` : undefined
}
