import { quoted, Refusal } from '../refusal/refusal.ts'
import type { NodeConfig } from './defaults.ts'
import { fsGroupOf, parseGroup } from './fs-group.ts'
import { parseOptionsText } from './json-options.ts'
import type { MountRequest } from './mount-request.ts'
import { checkOptions, type Options } from './schema.ts'
import { parseSource } from './source.ts'

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
  faults(request: KindRequest, config: NodeConfig): string[]
}

export interface Kinds {
  of(fsType: string): KindRules | undefined
  names: readonly string[]
}

/**
 * Reads `mount`'s options argument.
 * @param kinds the kinds of volume there are
 * @throws {Refusal} with every fault of the call
 */
export function readRequest(directory: string, text: string, config: NodeConfig, kinds: Kinds): MountRequest {
  const parsed = parseOptionsText(text)
  const checked = checkOptions(parsed.entries)
  const group = fsGroupOf(
    new Map(parsed.entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
  )
  const { options } = checked
  const request = assemble(directory, options, group.group, kinds)
  const faults = [
    ...parsed.faults,
    ...checked.faults,
    ...group.faults,
    ...idmapFaults(options),
    ...contradictions(options),
  ]
  // With a bad option the others are unknown too: the kind's verdict would be about values nobody gave.
  if (checked.faults.length === 0) faults.push(...kindFaults(request, config, kinds))
  if (faults.length > 0) throw new Refusal(faults)
  return request
}

function assemble(directory: string, options: Options, fsGroup: number | undefined, kinds: Kinds): MountRequest {
  const fsType = options['kubernetes.io/fsType'] || 'bind'
  const pod = [options['kubernetes.io/pod.namespace'], options['kubernetes.io/pod.name']]
    .filter(Boolean)
    .join('/')
    .slice(0, LONGEST_POD)
  return {
    directory,
    source: parseSource(options.source, kinds.of(fsType)?.isDisk),
    subPath: options.subPath || undefined,
    fsType,
    mountOptions: (options.mountOptions ?? '').split(',').filter((option) => option !== ''),
    readOnly: options['kubernetes.io/readwrite'] === 'ro' || /(^|,)ro(,|$)/.test(options.mountOptions ?? ''),
    fsGroup,
    ownership: options.ownership ?? 'none',
    idmapFrom: options.idmapFrom === undefined ? undefined : Number(options.idmapFrom),
    groupAccess: options.groupAccess ?? 'keep',
    changePolicy: options.fsGroupChangePolicy ?? 'OnRootMismatch',
    restoreOnUnmount: options.restoreOnUnmount === 'true',
    pod: pod || undefined,
  }
}

// Namespace (63), slash, name (253): more is no pod's, and would fill the log.
const LONGEST_POD = 317

const NEEDS = [
  { way: 'walk', keys: ['groupAccess', 'fsGroupChangePolicy', 'restoreOnUnmount'] },
  { way: 'idmap', keys: ['idmapFrom'] },
] as const

function idmapFaults({ idmapFrom }: Options): string[] {
  if (idmapFrom === undefined || typeof parseGroup(idmapFrom) === 'number') return []
  return [
    `option "idmapFrom" is ${quoted(idmapFrom)}: write the group that the files have on disk, a decimal number from 0 to 4294967294`,
  ]
}

function contradictions(options: Options): string[] {
  const faults: string[] = []
  for (const { way, keys } of NEEDS) {
    if (options.ownership === way || options.ownership === 'auto') continue
    for (const key of keys) {
      if (options[key] === undefined || options[key] === 'false') continue
      faults.push(
        `option "${key}" is ${quoted(options[key])} but ownership is ${quoted(options.ownership ?? 'none')}: set ownership to "${way}" or "auto", or leave ${key} out`,
      )
    }
  }
  if (options['kubernetes.io/readwrite'] === 'ro' && /(^|,)rw(,|$)/.test(options.mountOptions ?? '')) {
    faults.push('option "mountOptions" has rw but the volume is readOnly: leave one of them out')
  }
  return faults
}

/** What is wrong with a request as its kind sees it. */
export function kindFaults(request: MountRequest, config: NodeConfig, kinds: Kinds): string[] {
  const kind = kinds.of(request.fsType)
  if (!kind) {
    return [`fsType is ${quoted(request.fsType)}: this version mounts ${kinds.names.join(', ')} (empty means bind)`]
  }
  if (!config.allowedFsTypes.includes(request.fsType)) {
    return [
      `fsType ${quoted(request.fsType)} is not allowed on this node: its administrator can add it to allowedFsTypes in the node's modekeep configuration`,
    ]
  }
  return kind.faults(request, config)
}
