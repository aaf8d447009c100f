import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import type { MountRequest } from './mount-request.ts'
import { type AllowRule, DEFAULT_ALLOWED_FS_TYPES, isGroupInRanges, matchesGlob, matchesSourceEntry } from './rule.ts'
import { formatSource } from './source.ts'

export type RuleCheckRequest = Omit<MountRequest, 'directory' | 'restoreOnUnmount'> & {
  /** Keys of the pod's Secret that a rule must name. */
  secretNames?: readonly string[]
}

/** Whether a rule must name a mount option: not at all, by its name, or with its value. */
export type RequiredOptionNaming = 'none' | 'name' | 'value'

/** Traits of a kind of volume that the decision depends on. */
export interface VolumeKindTraits {
  /** A walk changes files on a server, which other nodes may mount, too. */
  walksServer: boolean
  hasNoSource: boolean
  naming(option: string): RequiredOptionNaming
}

export type AllowRulesVerdict = { rule: AllowRule } | { refusal: Fault }

/** Returns why a key of the rule does not match the request; undefined: it matches. */
type FindRuleMismatch = (rule: AllowRule, request: RuleCheckRequest, kind: VolumeKindTraits) => string | undefined

const reportMismatchUnless = (isFine: boolean, objection: string) => (isFine ? undefined : objection)

const RULE_MISMATCH_CHECKS: readonly FindRuleMismatch[] = [
  ({ namespaces }, { namespace = '' }) =>
    reportMismatchUnless(
      namespaces?.some((glob) => namespace !== '' && matchesGlob(glob, namespace)) ?? true,
      'its namespace',
    ),
  ({ volumes }, { lifecycle }) =>
    // A rule with `volumes` allows no FlexVolume, because kubelet does not report how it came to its pod.
    reportMismatchUnless(
      volumes === undefined || (lifecycle !== undefined && volumes.includes(lifecycle)),
      `${lifecycle ?? 'FlexVolume'} volumes`,
    ),
  ({ sources }, { source, fsType, namespace }, { hasNoSource }) =>
    reportMismatchUnless(
      hasNoSource || (sources?.some((entry) => matchesSourceEntry(entry, source, namespace, fsType)) ?? true),
      'its source',
    ),
  ({ fsTypes = DEFAULT_ALLOWED_FS_TYPES }, { fsType }) =>
    reportMismatchUnless(fsTypes.includes(fsType), `fsType ${fsType}`),
  ({ ownership: allowed }, { ownership }) =>
    reportMismatchUnless(allowed?.includes(ownership) ?? true, `ownership ${ownership}`),
  ({ groupAccess: allowed }, { fsGroup: { access }, ownership }) =>
    reportMismatchUnless(!mayOwnershipWalk(ownership) || (allowed?.includes(access) ?? true), `groupAccess ${access}`),
  ({ fsGroups }, { fsGroup: { groupId } }) =>
    reportMismatchUnless(
      groupId === undefined || fsGroups === undefined || isGroupInRanges(fsGroups, groupId),
      `fsGroup ${groupId}`,
    ),
  ({ idmapFrom: allowed = [] }, { idmapFrom }) =>
    reportMismatchUnless(idmapFrom === undefined || isGroupInRanges(allowed, idmapFrom), `idmapFrom ${idmapFrom}`),
  ({ setGid }, { rootSetGid }) => reportMismatchUnless(!rootSetGid || setGid === 'root', 'setGid "root"'),
  ({ mountOptions: allowed }, { mountOptions }, { naming }) => {
    const missing = mountOptions.filter((option) => !isMountOptionAllowed(allowed, option, naming(option)))
    return reportMismatchUnless(missing.length === 0, `mountOptions ${quoteValue(missing.join(','))}`)
  },
  ({ submounts: allowed }, { submounts }) =>
    reportMismatchUnless(submounts !== 'include' || allowed === 'include', 'submounts "include"'),
  ({ secretKeys = {} }, { secretNames = [] }) => {
    const missing = secretNames.filter((name) => !Object.hasOwn(secretKeys, name))
    return reportMismatchUnless(
      missing.length === 0,
      `the key ${quoteValue(missing.join(', '))} of its Secret in secretKeys`,
    )
  },
]

function isMountOptionAllowed(
  allowed: readonly string[] | undefined,
  option: string,
  naming: RequiredOptionNaming,
): boolean {
  if (allowed === undefined) return naming === 'none'
  return allowed.includes(option) || (naming !== 'value' && allowed.includes(option.split('=', 1)[0] ?? ''))
}

const mayOwnershipWalk = (ownership: string) => ownership === 'walk' || ownership === 'auto'

/**
 * Decides whether the node's rules allow a request: the first rule that matches decides. Pure.
 * @returns that rule, or a sentence that names the request, the namespace and the rules
 */
export function checkRequestAgainstRules(
  rules: readonly AllowRule[],
  request: RuleCheckRequest,
  kind: VolumeKindTraits,
): AllowRulesVerdict {
  const objections = rules.map((rule) => RULE_MISMATCH_CHECKS.flatMap((object) => object(rule, request, kind) ?? []))
  const first = objections.findIndex((found) => found.length === 0)
  const rule = rules[first]
  if (rule === undefined) {
    const considered = formatRules(
      rules.map((one, index) => `${formatRule(one, index)} does not have ${objections[index]?.join(', ')}`),
    )
    return createRuleRefusal(request, considered, 'add a rule')
  }
  if (rule.readOnly && !request.readOnly) {
    return createRuleRefusal(
      request,
      `${formatRule(rule, first)} is for reading: set readOnly on the volume`,
      'change it',
    )
  }
  if (
    kind.walksServer &&
    mayOwnershipWalk(request.ownership) &&
    request.fsGroup.groupId !== undefined &&
    !request.readOnly &&
    !rule.singleNode
  ) {
    const reason =
      `${formatRule(rule, first)} does not say singleNode, and another node would record the groups that this node's walk gave as the original ones: ` +
      'leave ownership out and give the group on the server'
    return createRuleRefusal(request, reason, 'say "singleNode": true where no other node mounts it')
  }
  return { rule }
}

function createRuleRefusal(request: RuleCheckRequest, reason: string, remedy: string): AllowRulesVerdict {
  const { namespace, source, fsType, readOnly, ownership } = request
  const requester = namespace === undefined ? 'a pod without a namespace' : `namespace ${quoteValue(namespace)}`
  const text = formatSource(source)
  const volume = `${fsType}${text === undefined ? '' : ` ${quoteValue(text)}`}`
  return {
    refusal: createFault(
      'not-allowed',
      `${requester} may not have ${volume} (${readOnly ? 'read-only' : 'writable'}, ownership ${ownership}) on this node`,
      `its administrator can ${remedy} in "allow" of the node's modekeep configuration`,
      reason,
    ),
  }
}

const MAX_QUOTED_RULES = 5

function formatRules(all: readonly string[]): string {
  if (all.length === 0) return 'it has no rule'
  const more = all.length - MAX_QUOTED_RULES
  return [...all.slice(0, MAX_QUOTED_RULES), ...(more > 0 ? [`and ${more} more rules do not either`] : [])].join('; ')
}

const MAX_QUOTED_RULE_LENGTH = 120

function formatRule(rule: AllowRule, index: number): string {
  const text = JSON.stringify(rule)
  return `rule ${index + 1} ${text.length > MAX_QUOTED_RULE_LENGTH ? `${text.slice(0, MAX_QUOTED_RULE_LENGTH)}…` : text}`
}
