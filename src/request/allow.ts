import { quoted } from '../refusal/refusal.ts'
import type { MountRequest } from './mount-request.ts'
import { DEFAULT_FS_TYPES, isInRanges, matchesGlob, type Rule } from './rule.ts'
import { holdsSource } from './rule-source.ts'
import { sourceText } from './source.ts'

/** What a decision depends on. */
export type Wish = Pick<
  MountRequest,
  | 'namespace'
  | 'lifecycle'
  | 'source'
  | 'fsType'
  | 'mountOptions'
  | 'readOnly'
  | 'ownership'
  | 'groupAccess'
  | 'fsGroup'
  | 'idmapFrom'
  | 'rootSetGid'
  | 'submounts'
> & {
  /** Keys of its Secret that a rule has to name. */
  secretNames?: readonly string[]
}

/** How far a rule has to name a mount option: not at all, by its name, or with its value. */
export type Naming = 'none' | 'name' | 'value'

/** What a decision must know of a kind of volume. */
export interface KindOfWish {
  /** A walk changes files on a server, which other nodes may mount too. */
  walksServer: boolean
  naming(option: string): Naming
}

export type Verdict = { rule: Rule } | { refusal: string }

/** What a key of a rule has against a request; undefined: nothing. */
type Objection = (rule: Rule, wish: Wish, kind: KindOfWish) => string | undefined

const unless = (isFine: boolean, what: string) => (isFine ? undefined : what)

const OBJECTIONS: readonly Objection[] = [
  ({ namespaces }, { namespace = '' }) =>
    unless(namespaces?.some((glob) => namespace !== '' && matchesGlob(glob, namespace)) ?? true, 'its namespace'),
  ({ volumes }, { lifecycle }) =>
    // What a rule is not asked about it does not allow: nobody knows how a FlexVolume came to its pod.
    unless(
      volumes === undefined || (lifecycle !== undefined && volumes.includes(lifecycle)),
      `${lifecycle ?? 'FlexVolume'} volumes`,
    ),
  ({ sources }, { source, fsType, namespace }) =>
    unless(
      fsType === 'tmpfs' || (sources?.some((entry) => holdsSource(entry, source, namespace, fsType)) ?? true),
      'its source',
    ),
  ({ fsTypes = DEFAULT_FS_TYPES }, { fsType }) => unless(fsTypes.includes(fsType), `fsType ${fsType}`),
  ({ ownership: allowed }, { ownership }) => unless(allowed?.includes(ownership) ?? true, `ownership ${ownership}`),
  ({ groupAccess: allowed }, { groupAccess, ownership }) =>
    unless(!mayWalk(ownership) || (allowed?.includes(groupAccess) ?? true), `groupAccess ${groupAccess}`),
  ({ fsGroups }, { fsGroup }) =>
    unless(fsGroup === undefined || fsGroups === undefined || isInRanges(fsGroups, fsGroup), `fsGroup ${fsGroup}`),
  ({ idmapFrom: allowed = [] }, { idmapFrom }) =>
    unless(idmapFrom === undefined || isInRanges(allowed, idmapFrom), `idmapFrom ${idmapFrom}`),
  ({ setGid }, { rootSetGid }) => unless(!rootSetGid || setGid === 'root', 'setGid "root"'),
  ({ mountOptions: allowed }, { mountOptions }, { naming }) => {
    const missing = mountOptions.filter((option) => !isNamed(allowed, option, naming(option)))
    return unless(missing.length === 0, `mountOptions ${quoted(missing.join(','))}`)
  },
  ({ submounts: allowed }, { submounts }) =>
    unless(submounts !== 'include' || allowed === 'include', 'submounts "include"'),
  ({ secretKeys = {} }, { secretNames = [] }) => {
    const missing = secretNames.filter((name) => !Object.hasOwn(secretKeys, name))
    return unless(missing.length === 0, `the key ${quoted(missing.join(', '))} of its Secret in secretKeys`)
  },
]

function isNamed(allowed: readonly string[] | undefined, option: string, naming: Naming): boolean {
  if (allowed === undefined) return naming === 'none'
  return allowed.includes(option) || (naming !== 'value' && allowed.includes(option.split('=', 1)[0] ?? ''))
}

const mayWalk = (ownership: string) => ownership === 'walk' || ownership === 'auto'

/**
 * Whether the node's rules let a pod have what it asks for: the first rule that matches decides. Pure.
 * @returns that rule, or a sentence that names what was asked, the namespace and the rules that were considered
 */
export function allow(rules: readonly Rule[], wish: Wish, kind: KindOfWish): Verdict {
  const objections = rules.map((rule) => OBJECTIONS.flatMap((object) => object(rule, wish, kind) ?? []))
  const first = objections.findIndex((found) => found.length === 0)
  const rule = rules[first]
  if (rule === undefined) {
    const considered = shownRules(
      rules.map((one, at) => `${nameOf(one, at)} does not have ${objections[at]?.join(', ')}`),
    )
    return refuse(wish, considered, 'add a rule')
  }
  if (rule.readOnly && !wish.readOnly) {
    return refuse(wish, `${nameOf(rule, first)} is for reading: set readOnly on the volume`, 'change it')
  }
  if (kind.walksServer && mayWalk(wish.ownership) && wish.fsGroup !== undefined && !wish.readOnly && !rule.singleNode) {
    const why =
      `${nameOf(rule, first)} does not say singleNode, and another node would record the groups that this node's walk gave as the original ones: ` +
      'leave ownership out and give the group on the server'
    return refuse(wish, why, 'say "singleNode": true where no other node mounts it')
  }
  return { rule }
}

function refuse(wish: Wish, why: string, way: string): Verdict {
  const { namespace, source, fsType, readOnly, ownership } = wish
  const whose = namespace === undefined ? 'a pod without a namespace' : `namespace ${quoted(namespace)}`
  const text = sourceText(source)
  const what = `${fsType}${text === undefined ? '' : ` ${quoted(text)}`}`
  return {
    refusal:
      `${whose} may not have ${what} (${readOnly ? 'read-only' : 'writable'}, ownership ${ownership}) on this node: ${why}; ` +
      `its administrator can ${way} in "allow" of the node's modekeep configuration`,
  }
}

const MOST_RULES = 5

function shownRules(all: readonly string[]): string {
  if (all.length === 0) return 'it has no rule'
  const more = all.length - MOST_RULES
  return [...all.slice(0, MOST_RULES), ...(more > 0 ? [`and ${more} more rules do not either`] : [])].join('; ')
}

const LONGEST_RULE = 120

function nameOf(rule: Rule, at: number): string {
  const text = JSON.stringify(rule)
  return `rule ${at + 1} ${text.length > LONGEST_RULE ? `${text.slice(0, LONGEST_RULE)}…` : text}`
}
