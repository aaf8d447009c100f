import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import type { MountRequest } from './mount-request.ts'
import { DEFAULT_FS_TYPES, isInRanges, matchesGlob, matchesSource, type Rule } from './rule.ts'
import { formatSource } from './source.ts'

export type AllowRequest = Omit<MountRequest, 'directory' | 'restoreOnUnmount'> & {
  /** Keys of the pod's Secret that a rule must name. */
  secretNames?: readonly string[]
}

/** Whether a rule must name a mount option: not at all, by its name, or with its value. */
export type OptionNaming = 'none' | 'name' | 'value'

/** Traits of a kind of volume that the decision depends on. */
export interface KindTraits {
  /** A walk changes files on a server, which other nodes may mount, too. */
  walksServer: boolean
  hasNoSource: boolean
  naming(option: string): OptionNaming
}

export type AllowVerdict = { rule: Rule } | { refusal: Fault }

/** Returns why a key of the rule does not match the request; undefined: it matches. */
type Objection = (rule: Rule, request: AllowRequest, kind: KindTraits) => string | undefined

const objectUnless = (isFine: boolean, objection: string) => (isFine ? undefined : objection)

const RULE_OBJECTIONS: readonly Objection[] = [
  ({ namespaces }, { namespace = '' }) =>
    objectUnless(namespaces?.some((glob) => namespace !== '' && matchesGlob(glob, namespace)) ?? true, 'its namespace'),
  ({ volumes }, { lifecycle }) =>
    // A rule with `volumes` allows no FlexVolume, because kubelet does not report how it came to its pod.
    objectUnless(
      volumes === undefined || (lifecycle !== undefined && volumes.includes(lifecycle)),
      `${lifecycle ?? 'FlexVolume'} volumes`,
    ),
  ({ sources }, { source, fsType, namespace }, { hasNoSource }) =>
    objectUnless(
      hasNoSource || (sources?.some((entry) => matchesSource(entry, source, namespace, fsType)) ?? true),
      'its source',
    ),
  ({ fsTypes = DEFAULT_FS_TYPES }, { fsType }) => objectUnless(fsTypes.includes(fsType), `fsType ${fsType}`),
  ({ ownership: allowed }, { ownership }) =>
    objectUnless(allowed?.includes(ownership) ?? true, `ownership ${ownership}`),
  ({ groupAccess: allowed }, { fsGroup: { access }, ownership }) =>
    objectUnless(!mayWalk(ownership) || (allowed?.includes(access) ?? true), `groupAccess ${access}`),
  ({ fsGroups }, { fsGroup: { groupId } }) =>
    objectUnless(
      groupId === undefined || fsGroups === undefined || isInRanges(fsGroups, groupId),
      `fsGroup ${groupId}`,
    ),
  ({ idmapFrom: allowed = [] }, { idmapFrom }) =>
    objectUnless(idmapFrom === undefined || isInRanges(allowed, idmapFrom), `idmapFrom ${idmapFrom}`),
  ({ setGid }, { rootSetGid }) => objectUnless(!rootSetGid || setGid === 'root', 'setGid "root"'),
  ({ mountOptions: allowed }, { mountOptions }, { naming }) => {
    const missing = mountOptions.filter((option) => !isOptionNamed(allowed, option, naming(option)))
    return objectUnless(missing.length === 0, `mountOptions ${quoteValue(missing.join(','))}`)
  },
  ({ submounts: allowed }, { submounts }) =>
    objectUnless(submounts !== 'include' || allowed === 'include', 'submounts "include"'),
  ({ secretKeys = {} }, { secretNames = [] }) => {
    const missing = secretNames.filter((name) => !Object.hasOwn(secretKeys, name))
    return objectUnless(missing.length === 0, `the key ${quoteValue(missing.join(', '))} of its Secret in secretKeys`)
  },
]

function isOptionNamed(allowed: readonly string[] | undefined, option: string, naming: OptionNaming): boolean {
  if (allowed === undefined) return naming === 'none'
  return allowed.includes(option) || (naming !== 'value' && allowed.includes(option.split('=', 1)[0] ?? ''))
}

const mayWalk = (ownership: string) => ownership === 'walk' || ownership === 'auto'

/**
 * Decides whether the node's rules allow a request: the first rule that matches decides. Pure.
 * @returns that rule, or a sentence that names the request, the namespace and the rules
 */
export function decideRequest(rules: readonly Rule[], request: AllowRequest, kind: KindTraits): AllowVerdict {
  const objections = rules.map((rule) => RULE_OBJECTIONS.flatMap((object) => object(rule, request, kind) ?? []))
  const first = objections.findIndex((found) => found.length === 0)
  const rule = rules[first]
  if (rule === undefined) {
    const considered = formatRules(
      rules.map((one, index) => `${formatRule(one, index)} does not have ${objections[index]?.join(', ')}`),
    )
    return createRefusal(request, considered, 'add a rule')
  }
  if (rule.readOnly && !request.readOnly) {
    return createRefusal(request, `${formatRule(rule, first)} is for reading: set readOnly on the volume`, 'change it')
  }
  if (
    kind.walksServer &&
    mayWalk(request.ownership) &&
    request.fsGroup.groupId !== undefined &&
    !request.readOnly &&
    !rule.singleNode
  ) {
    const reason =
      `${formatRule(rule, first)} does not say singleNode, and another node would record the groups that this node's walk gave as the original ones: ` +
      'leave ownership out and give the group on the server'
    return createRefusal(request, reason, 'say "singleNode": true where no other node mounts it')
  }
  return { rule }
}

function createRefusal(request: AllowRequest, reason: string, remedy: string): AllowVerdict {
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

const MAX_RULES = 5

function formatRules(all: readonly string[]): string {
  if (all.length === 0) return 'it has no rule'
  const more = all.length - MAX_RULES
  return [...all.slice(0, MAX_RULES), ...(more > 0 ? [`and ${more} more rules do not either`] : [])].join('; ')
}

const MAX_RULE_LENGTH = 120

function formatRule(rule: Rule, index: number): string {
  const text = JSON.stringify(rule)
  return `rule ${index + 1} ${text.length > MAX_RULE_LENGTH ? `${text.slice(0, MAX_RULE_LENGTH)}…` : text}`
}
