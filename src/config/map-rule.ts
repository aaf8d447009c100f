import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import { isGroupInRanges, matchesGlob, matchesSourceEntry, type SystemGroupRule } from './rule.ts'

/**
 * A rule of the node's configuration that lets pods map volumes of other drivers to a group. It matches if every key
 * that it has matches.
 */
export interface MapRule extends SystemGroupRule {
  /** Globs of namespaces: `team-*`. */
  namespaces?: readonly string[] | undefined
  /** Kinds of volume; left out: those of DEFAULT_MAP_VOLUME_KINDS. */
  volumes?: readonly string[] | undefined
  /** Paths of hostPath volumes, as matchesSourceEntry compares them. Left out: none. */
  sources?: readonly string[] | undefined
  /** Types of file systems; left out: those of DEFAULT_MAP_FS_TYPES. */
  fsTypes?: readonly string[] | undefined
  /** Numbers and ranges of the groups that a pod may request. */
  groups?: readonly string[] | undefined
  /** The annotation may set the set-gid bit on the root of a volume. */
  setGid?: 'root' | undefined
  /** The annotation may request a walk that gives the group access to the volume on disk. */
  groupAccess?: 'grant' | undefined
}

/** Volumes that kubelet itself walks or could walk. It never does so for a hostPath. */
const DEFAULT_MAP_VOLUME_KINDS: readonly string[] = ['emptyDir', 'csi', 'local']

const DEFAULT_MAP_FS_TYPES: readonly string[] = ['ext4', 'xfs', 'btrfs']

/** Rules of a configuration without `map`. Messages compare the identity, to report that no rule is written. */
export const DEFAULT_MAP_RULES: readonly MapRule[] = [{}]

export const HOST_PATH_KIND = 'hostPath'

/** A volume that a pod wants to have mapped. */
interface MapRuleRequest {
  namespace: string
  /** Kind: `emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, or kubelet's plugin: `kubernetes.io/nfs`. */
  kind: string
  /** Name for messages; the path of a hostPath. */
  volume: string
  group: number
}

/** Permissions of one rule of `map` on its file systems. It is sent to another process as JSON. */
export interface MapRuleGrant extends SystemGroupRule {
  fsTypes: readonly string[]
  setGid?: 'root' | undefined
  groupAccess?: 'grant' | undefined
}

interface VolumeMapGrant {
  fsTypes: readonly string[]
  /** Undefined: the rules permit nothing beyond the types of file systems. */
  grants?: readonly MapRuleGrant[] | undefined
}

/**
 * Returns whether a rule lets the pod map the volume. Pure.
 * @returns the types of file systems of all matching rules and what each permits, or a sentence with the remedy
 */
export function findVolumeMapGrant(
  rules: readonly MapRule[],
  request: MapRuleRequest,
): VolumeMapGrant | { refusal: Fault } {
  const { namespace, kind, volume, group } = request
  const matching = rules.filter((rule) => findMapRuleMismatch(rule, request) === undefined)
  if (matching.length > 0) {
    const grants = matching.map(({ fsTypes = DEFAULT_MAP_FS_TYPES, ...rule }) => {
      const { setGid, groupAccess, systemGroups, protectedGroups } = rule
      return { fsTypes, setGid, groupAccess, systemGroups, protectedGroups }
    })
    const isPlain = grants.every(
      (one) => !one.setGid && !one.groupAccess && !one.systemGroups && one.protectedGroups === undefined,
    )
    const fsTypes = [...new Set(grants.flatMap((grant) => grant.fsTypes))]
    return isPlain ? { fsTypes } : { fsTypes, grants }
  }
  const [reason, remedy] =
    rules === DEFAULT_MAP_RULES ? explainDefaultMapRules(request) : explainMapRules(rules, request)
  return {
    refusal: createFault(
      'map-not-allowed',
      `namespace ${quoteValue(namespace)} may not have the ${kind} volume ${quoteValue(volume)} shown to group ${group} on this node`,
      `its administrator can ${remedy}`,
      reason,
    ),
  }
}

function explainDefaultMapRules({ kind, volume }: MapRuleRequest): [reason: string, remedy: string] {
  const sources = kind === HOST_PATH_KIND ? `, "sources": [${quoteValue(volume)}]` : ''
  return [
    `without "map" in the node's modekeep configuration only ${DEFAULT_MAP_VOLUME_KINDS.join(', ')} volumes may be`,
    `write "map": [{}, {"volumes": [${quoteValue(kind)}]${sources}}] there, where {} keeps what is allowed without it`,
  ]
}

function explainMapRules(rules: readonly MapRule[], request: MapRuleRequest): [reason: string, remedy: string] {
  const reason = rules
    .map((rule, at) => `rule ${at + 1} is not for ${findMapRuleMismatch(rule, request)}`)
    .slice(0, MAX_QUOTED_RULES)
  return [
    reason.length === 0 ? 'it has no rule' : reason.join('; '),
    'add a rule to "map" of the node\'s modekeep configuration',
  ]
}

const MAX_QUOTED_RULES = 5

function findMapRuleMismatch(rule: MapRule, { namespace, kind, volume, group }: MapRuleRequest): string | undefined {
  const { namespaces, volumes = DEFAULT_MAP_VOLUME_KINDS, sources = [], groups } = rule
  if (!(namespaces?.some((glob) => matchesGlob(glob, namespace)) ?? true)) return 'this namespace'
  if (!volumes.includes(kind)) return `${kind} volumes`
  const source = { type: 'local', path: volume } as const
  if (kind === HOST_PATH_KIND && !sources.some((entry) => matchesSourceEntry(entry, source, namespace, 'bind')))
    return 'this path'
  return groups !== undefined && !isGroupInRanges(groups, group) ? `group ${group}` : undefined
}
