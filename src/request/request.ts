import * as z from 'zod/mini'
import { fieldSizeFaults, LONGEST_FIELD, pathSizeFaults } from '../path/input-sizes.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { contradictions, submountFaults } from './contradictions.ts'
import type { NodeConfig } from './defaults.ts'
import { fsGroupOf } from './fs-group.ts'
import { parseOptionsText, secretFaults } from './json-options.ts'
import { type MountRequest, SUBMOUNT_POLICIES } from './mount-request.ts'
import { secretKeyFaults, type TakenSecrets } from './secret-keys.ts'
import { parseSource } from './source.ts'

function oneOf<const V extends readonly [string, ...string[]]>(values: V) {
  return z.optional(z.enum(values, { error: (issue) => `is ${quoted(issue.input)}: use one of ${values.join(', ')}` }))
}

const text = z.optional(z.string({ error: (issue) => `is ${quoted(issue.input)}: write it as a JSON string` }))

/** The options a pod's author may write, and kubelet's own keys (flexvolume/util.go). Every value is a string. */
export const optionsSchema = z.strictObject({
  source: text,
  subPath: text,
  mountOptions: text,
  ownership: oneOf(['none', 'walk', 'idmap', 'auto']),
  idmapFrom: text,
  groupAccess: oneOf(['keep', 'grant']),
  fsGroupChangePolicy: oneOf(['OnRootMismatch', 'Always']),
  restoreOnUnmount: oneOf(['true', 'false']),
  setGid: oneOf(['root']),
  submounts: oneOf(SUBMOUNT_POLICIES),
  'kubernetes.io/fsType': text,
  'kubernetes.io/readwrite': oneOf(['ro', 'rw']),
  'kubernetes.io/fsGroup': text,
  'kubernetes.io/mounterArgs.FsGroup': text,
  'kubernetes.io/pvOrVolumeName': text,
  'kubernetes.io/pod.name': text,
  'kubernetes.io/pod.namespace': text,
  'kubernetes.io/pod.uid': text,
  'kubernetes.io/serviceAccount.name': text,
})

export type Options = z.infer<typeof optionsSchema>

const KUBELET_PREFIX = 'kubernetes.io/'

/** The options an author writes by hand, for messages and documentation. */
export const AUTHOR_KEYS = Object.keys(optionsSchema.shape).filter((key) => !key.startsWith(KUBELET_PREFIX))

/**
 * Checks parsed entries against the schema; each fault names its key, its value (never a secret's) and the way out.
 * @returns the options that can be read, and the keys of which nobody knows what their author meant
 */
export function checkOptions(entries: readonly [string, unknown][]): {
  options: Options
  faults: string[]
  unsure: ReadonlySet<string>
} {
  // Only kubelet may write below kubernetes.io/ (API validation): a key added by a newer kubelet must not break mounts.
  const { known, kubelets, unknown } = Object.groupBy(entries, ([key]) => {
    if (Object.hasOwn(optionsSchema.shape, key)) return 'known'
    return key.startsWith(KUBELET_PREFIX) ? 'kubelets' : 'unknown'
  })
  // Some of these values are secrets: never shown.
  const faults = (kubelets ?? [])
    .filter(([, value]) => typeof value !== 'string')
    .map(([key]) => `option ${quoted(key)} must be a JSON string`)
  if (unknown) faults.push(`unknown ${quoted(unknown.map(([key]) => key))}: the options are ${AUTHOR_KEYS.join(', ')}`)
  const { data, error } = z.safeParse(optionsSchema, Object.fromEntries(known ?? []))
  for (const issue of error?.issues ?? []) faults.push(`option "${issue.path.join('.')}" ${issue.message}`)
  const bad = new Set(error?.issues.map(({ path }) => String(path[0])))
  const readable = Object.fromEntries((known ?? []).filter(([key]) => !bad.has(key)))
  // What is missing may be what an unknown key was to be.
  const missing = unknown ? AUTHOR_KEYS.filter((key) => !Object.hasOwn(readable, key)) : []
  return { options: data ?? z.parse(optionsSchema, readable), faults, unsure: new Set([...bad, ...missing]) }
}

/** What a kind judges: the rest of a request means the same for all. */
export type KindRequest = Pick<
  MountRequest,
  'source' | 'subPath' | 'fsType' | 'mountOptions' | 'readOnly' | 'ownership'
>

/** What a kind of volume says about a request before anyone looks at the node. */
export interface KindRules {
  readonly name: string
  /** Its sources are devices and images: file systems that the node itself mounts. */
  readonly isDisk?: true
  /** Its files are on a server, which other nodes may mount too. */
  readonly isRemote?: true
  /** Which keys of a Secret it takes; undefined: none. */
  readonly secretKeys?: TakenSecrets
  faults(request: KindRequest, config: NodeConfig): string[]
}

export interface Kinds {
  of(fsType: string): KindRules | undefined
  names: readonly string[]
}

/** The pod that kubelet names in `mount`'s options argument, whatever else is wrong there; undefined where it names none. */
export function podNamedIn(text: string): string | undefined {
  try {
    const named = new Map(parseOptionsText(text).entries)
    return podName(named.get('kubernetes.io/pod.namespace'), named.get('kubernetes.io/pod.name'))
  } catch {
    return undefined
  }
}

function podName(...parts: unknown[]): string | undefined {
  const named = parts.filter((part) => typeof part === 'string' && part !== '').join('/')
  return named.slice(0, LONGEST_POD) || undefined
}

/**
 * Reads `mount`'s options argument.
 * @param kinds the kinds of volume there are
 * @throws {Refusal} with every fault of the call
 */
export function readRequest(directory: string, text: string, config: NodeConfig, kinds: Kinds): MountRequest {
  const parsed = parseOptionsText(text)
  // Before anything else is done with a text: each of the checks below may be quick for short ones only.
  const tooLong = [...sizeFaults(parsed.entries), ...secretFaults(parsed.entries)]
  if (tooLong.length > 0) throw new Refusal(tooLong)
  const { options, faults, unsure } = checkOptions(parsed.entries)
  const group = fsGroupOf(
    new Map(parsed.entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
  )
  const fsType = options['kubernetes.io/fsType'] || 'bind'
  const mountOptions = (options.mountOptions ?? '').split(',').filter((option) => option !== '')
  const request: MountRequest = {
    directory,
    source: parseSource(options.source, kinds.of(fsType)?.isDisk),
    subPath: options.subPath || undefined,
    fsType,
    mountOptions,
    readOnly: options['kubernetes.io/readwrite'] === 'ro' || mountOptions.includes('ro'),
    fsGroup: group.group,
    ownership: options.ownership ?? 'none',
    idmapFrom: options.idmapFrom === undefined ? undefined : Number(options.idmapFrom),
    groupAccess: options.groupAccess ?? 'keep',
    changePolicy: options.fsGroupChangePolicy ?? 'OnRootMismatch',
    restoreOnUnmount: options.restoreOnUnmount === 'true',
    rootSetGid: options.setGid === undefined ? undefined : true,
    submounts: options.submounts,
    pod: podName(options['kubernetes.io/pod.namespace'], options['kubernetes.io/pod.name']),
    namespace: options['kubernetes.io/pod.namespace'] || undefined,
  }
  const all = [
    ...parsed.faults,
    ...faults,
    ...group.faults,
    ...contradictions(options, request, unsure),
    ...submountFaults(request, unsure),
    ...uidFaults(directory, options),
    ...(unsure.has('kubernetes.io/fsType') ? [] : secretKeyFaults(parsed.entries, kinds.of(fsType))),
    ...(unsure.has('kubernetes.io/fsType') ? [] : aboutGiven(kindFaults(request, config, kinds), unsure)),
  ]
  if (all.length > 0) throw new Refusal(all)
  return request
}

/** Faults in the lengths of the options that modekeep reads. */
function sizeFaults(entries: readonly [string, unknown][]): string[] {
  return entries.flatMap(([key, value]) => {
    if (typeof value !== 'string' || !Object.hasOwn(optionsSchema.shape, key)) return []
    const subject = `option "${key}"`
    const isPath = key === 'subPath' || (key === 'source' && /^\/|^[^/]*:\//.test(value.slice(0, LONGEST_FIELD)))
    return isPath ? pathSizeFaults(subject, value) : fieldSizeFaults(subject, value)
  })
}

/** Without verdicts about values that nobody gave. */
function aboutGiven(faults: readonly string[], unsure: ReadonlySet<string>): string[] {
  return faults.filter((fault) => !unsure.has(/^option "([^"]*)"/.exec(fault)?.[1] ?? ''))
}

// Namespace (63), slash, name (253): more is no pod's, and would fill the log.
const LONGEST_POD = 317

// <root-dir>/pods/<uid>/volumes/<vendor>~<driver>/<name>, and /mount below that of a CSI volume. A static pod's uid is a
// hash without hyphens.
const UID =
  /\/pods\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\/volumes\/(?:kubernetes\.io~csi\/[^/]+\/mount|[^/]+~[^/]+\/[^/]+)$/

/** The uid of the pod that a mount directory of kubelet's is for; undefined for other directories. */
export function podOf(directory: string): string | undefined {
  return UID.exec(directory)?.[1]
}

/**
 * The options may be a pod's own, the directory is kubelet's: where it names a pod, the options must name the same. Only
 * the API server keeps pods from setting keys of kubelet's (validateFlexVolumeSource).
 */
function uidFaults(directory: string, options: Options): string[] {
  const uid = options['kubernetes.io/pod.uid']
  const expected = podOf(directory)
  if (expected === undefined || uid === expected) return []
  return [
    `option "kubernetes.io/pod.uid" is ${quoted(uid)}, but the mount directory is that of pod ${expected}: leave the keys of kubelet's out of the volume's options`,
  ]
}

/** What is wrong with a request as its kind sees it. */
export function kindFaults(request: MountRequest, config: NodeConfig, kinds: Kinds): string[] {
  const kind = kinds.of(request.fsType)
  if (!kind) {
    return [`fsType is ${quoted(request.fsType)}: this version mounts ${kinds.names.join(', ')} (empty means bind)`]
  }
  return kind.faults(request, config)
}
