import * as z from 'zod/mini'
import { createFault, createOptionFault, type Fault, OPTION_TERM_PLACEHOLDER } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { checkFieldSize, checkPathSize, MAX_FIELD_BYTES } from '../kernel/path/input-sizes.ts'
import type { NodeConfig } from './defaults.ts'
import { findSecretSizeFaults, parseOptionsJson, SECRET_KEY_PREFIX } from './json-options.ts'
import { type MountRequest, SUBMOUNT_POLICIES } from './mount-request.ts'
import {
  type AcceptedSecretKeys,
  findOptionContradictions,
  findPodUidFaults,
  findSecretKeyFaults,
  findSubmountFaults,
  parseFsGroup,
} from './option-faults.ts'
import { createEnumSchema, createSchemaError } from './rule-schema.ts'
import { parseSource } from './source.ts'

const optionTextSchema = z.optional(z.string(createSchemaError('write it as a JSON string')))
const createOptionalEnumSchema = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.optional(createEnumSchema(values))

/** The options of a pod's author, and kubelet's own keys (flexvolume/util.go). Every value is a string. */
export const volumeOptionsSchema = z.strictObject({
  source: optionTextSchema,
  subPath: optionTextSchema,
  mountOptions: optionTextSchema,
  ownership: createOptionalEnumSchema(['none', 'walk', 'idmap', 'auto']),
  idmapFrom: optionTextSchema,
  groupAccess: createOptionalEnumSchema(['keep', 'grant']),
  fsGroupChangePolicy: createOptionalEnumSchema(['OnRootMismatch', 'Always']),
  restoreOnUnmount: createOptionalEnumSchema(['true', 'false']),
  setGid: createOptionalEnumSchema(['root']),
  submounts: createOptionalEnumSchema(SUBMOUNT_POLICIES),
  'kubernetes.io/fsType': optionTextSchema,
  'kubernetes.io/readwrite': createOptionalEnumSchema(['ro', 'rw']),
  'kubernetes.io/fsGroup': optionTextSchema,
  'kubernetes.io/mounterArgs.FsGroup': optionTextSchema,
  'kubernetes.io/pvOrVolumeName': optionTextSchema,
  'kubernetes.io/pod.name': optionTextSchema,
  'kubernetes.io/pod.namespace': optionTextSchema,
  'kubernetes.io/pod.uid': optionTextSchema,
  'kubernetes.io/serviceAccount.name': optionTextSchema,
})

export type VolumeOptions = z.infer<typeof volumeOptionsSchema>

const KUBELET_OPTION_PREFIX = 'kubernetes.io/'

/** The options that an author writes by hand, for messages and documentation. */
export const AUTHOR_OPTION_KEYS = Object.keys(volumeOptionsSchema.shape).filter(
  (key) => !key.startsWith(KUBELET_OPTION_PREFIX),
)

/**
 * Checks parsed entries against the schema. Each fault names its key, its value (never a secret's) and the remedy.
 * @returns the readable options, and the keys whose intended value is unknown
 */
export function checkVolumeOptions(entries: readonly [string, unknown][]): {
  options: VolumeOptions
  faults: Fault[]
  uncertainKeys: ReadonlySet<string>
} {
  // Only kubelet may write below kubernetes.io/ (API validation), and a key added by a newer kubelet must not break
  // mounts.
  const { known, kubeletOptions, unknown } = Object.groupBy(entries, ([key]) => {
    if (Object.hasOwn(volumeOptionsSchema.shape, key)) return 'known'
    return key.startsWith(KUBELET_OPTION_PREFIX) ? 'kubeletOptions' : 'unknown'
  })
  // Some of these values are secrets, so no value is shown.
  const faults = (kubeletOptions ?? [])
    .filter(([, value]) => typeof value !== 'string')
    .map(([key]) => createOptionFault('option-format', key, 'must be a JSON string'))
  if (unknown)
    faults.push(
      createFault(
        'option-unknown',
        `unknown ${quoteValue(unknown.map(([key]) => key))}`,
        `the options are ${AUTHOR_OPTION_KEYS.join(', ')}`,
      ),
    )
  const { data, error } = z.safeParse(volumeOptionsSchema, Object.fromEntries(known ?? []))
  for (const issue of error?.issues ?? [])
    faults.push(createOptionFault('option-format', issue.path.join('.'), issue.message))
  const invalidKeys = new Set(error?.issues.map(({ path }) => String(path[0])))
  const readable = Object.fromEntries((known ?? []).filter(([key]) => !invalidKeys.has(key)))
  // An unknown key may be a misspelt missing one.
  const missing = unknown ? AUTHOR_OPTION_KEYS.filter((key) => !Object.hasOwn(readable, key)) : []
  return {
    options: data ?? z.parse(volumeOptionsSchema, readable),
    faults,
    uncertainKeys: new Set([...invalidKeys, ...missing]),
  }
}

/** The part of a request that depends on the kind of volume. */
export type VolumeKindRequest = Pick<
  MountRequest,
  'source' | 'subPath' | 'fsType' | 'mountOptions' | 'readOnly' | 'ownership'
>

/** Checks of a kind of volume that do not access the node. */
export interface VolumeKindRules {
  readonly name: string
  /** Its sources are devices and images: file systems that the node itself mounts. */
  readonly isDisk?: true
  /** Its files are on a server, which other nodes may mount, too. */
  readonly isRemote?: true
  /** Its mounts are new and empty, so `sources` of a rule does not concern them. */
  readonly hasNoSource?: true
  /** Keys that it accepts in a Secret; undefined: none. */
  readonly secretKeys?: AcceptedSecretKeys
  faults(request: VolumeKindRequest, config: NodeConfig): Fault[]
}

interface VolumeKinds {
  find(fsType: string): VolumeKindRules | undefined
  names: readonly string[]
}

/** Options of a mount as kubelet's call has them, unchecked. */
interface UncheckedVolumeOptions {
  /** By the keys of `volumeOptionsSchema`; other keys are faults, except new ones of kubelet's. */
  readonly entries: readonly [string, unknown][]
  readonly secretKeys: readonly string[]
  /** Faults of the call itself, such as text that is no JSON. */
  readonly faults?: readonly Fault[]
  /** Faults in the sizes of its secrets. */
  readonly sizeFaults?: readonly Fault[]
}

/** Returns the pod that kubelet names, even if the options have faults; undefined: it names none. */
export function findPodName(entries: UncheckedVolumeOptions['entries']): string | undefined {
  const named = new Map(entries)
  return formatPodName(named.get('kubernetes.io/pod.namespace'), named.get('kubernetes.io/pod.name'))
}

function formatPodName(...parts: unknown[]): string | undefined {
  const named = parts.filter((part) => typeof part === 'string' && part !== '').join('/')
  return named.slice(0, MAX_POD_NAME_LENGTH) || undefined
}

/** Reads the options argument of FlexVolume's `mount`. @throws {Refusal} as `createMountRequest` */
export function parseFlexVolumeRequest(
  directory: string,
  text: string,
  config: NodeConfig,
  kinds: VolumeKinds,
): MountRequest {
  const { entries, faults } = parseOptionsJson(text)
  const secretKeys = entries.flatMap(([key]) =>
    key.startsWith(SECRET_KEY_PREFIX) ? [key.slice(SECRET_KEY_PREFIX.length)] : [],
  )
  return createMountRequest(
    directory,
    { entries, secretKeys, faults, sizeFaults: findSecretSizeFaults(entries) },
    config,
    kinds,
  )
}

/**
 * Checks and completes the options of a mount, for every protocol of kubelet's.
 * @param kinds the existing kinds of volume
 * @throws {Refusal} with every fault of the call
 */
export function createMountRequest(
  directory: string,
  { entries, secretKeys, faults: formFaults = [], sizeFaults = [] }: UncheckedVolumeOptions,
  config: NodeConfig,
  kinds: VolumeKinds,
): MountRequest {
  // Lengths are checked first, because each of the checks below may be fast for short texts only.
  const lengthFaults = [...findOptionLengthFaults(entries), ...sizeFaults]
  if (lengthFaults.length > 0) throw new Refusal(lengthFaults)
  const { options, faults, uncertainKeys } = checkVolumeOptions(entries)
  const group = parseFsGroup(new Map(entries))
  const fsType = options['kubernetes.io/fsType'] || 'bind'
  const kind = kinds.find(fsType)
  const mountOptions = (options.mountOptions ?? '').split(',').filter((option) => option !== '')
  const request: MountRequest = {
    directory,
    source: parseSource(options.source, kind?.isDisk),
    subPath: options.subPath || undefined,
    fsType,
    mountOptions,
    readOnly: options['kubernetes.io/readwrite'] === 'ro' || mountOptions.includes('ro'),
    ownership: options.ownership ?? 'none',
    fsGroup: {
      groupId: group.group,
      access: options.groupAccess ?? 'keep',
      changePolicy: options.fsGroupChangePolicy ?? 'OnRootMismatch',
    },
    idmapFrom: options.idmapFrom === undefined ? undefined : Number(options.idmapFrom),
    restoreOnUnmount: options.restoreOnUnmount === 'true',
    rootSetGid: options.setGid === undefined ? undefined : true,
    submounts: options.submounts,
    pod: formatPodName(options['kubernetes.io/pod.namespace'], options['kubernetes.io/pod.name']),
    namespace: options['kubernetes.io/pod.namespace'] || undefined,
  }
  const kindFaults = [...findSecretKeyFaults(secretKeys, kind), ...findVolumeKindFaults(request, config, kinds)]
  const all = [
    ...formFaults,
    ...faults,
    ...group.faults,
    ...findOptionContradictions(options, request, uncertainKeys),
    ...findSubmountFaults(request, uncertainKeys),
    ...findPodUidFaults(directory, options),
    // Faults about values that the author did not write are left out.
    ...(uncertainKeys.has('kubernetes.io/fsType') ? [] : kindFaults.filter(({ key = '' }) => !uncertainKeys.has(key))),
  ]
  if (all.length > 0) throw new Refusal(all)
  return request
}

function findOptionLengthFaults(entries: readonly [string, unknown][]): Fault[] {
  return entries.flatMap(([key, value]) => {
    if (typeof value !== 'string' || !Object.hasOwn(volumeOptionsSchema.shape, key)) return []
    const subject = `${key.startsWith(KUBELET_OPTION_PREFIX) ? 'option' : OPTION_TERM_PLACEHOLDER} "${key}"`
    const isPath = key === 'subPath' || (key === 'source' && /^\/|^[^/]*:\//.test(value.slice(0, MAX_FIELD_BYTES)))
    return isPath ? checkPathSize(subject, value) : checkFieldSize(subject, value)
  })
}

// Namespace (63), slash, name (253). A longer text names no pod, and would fill the log.
const MAX_POD_NAME_LENGTH = 317

export function findVolumeKindFaults(request: MountRequest, config: NodeConfig, kinds: VolumeKinds): Fault[] {
  const kind = kinds.find(request.fsType)
  if (!kind) {
    return [
      createFault(
        'fs-type',
        `fsType is ${quoteValue(request.fsType)}`,
        `this version mounts ${kinds.names.join(', ')} (empty means bind)`,
      ),
    ]
  }
  return kind.faults(request, config)
}
