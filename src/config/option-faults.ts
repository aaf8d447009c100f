import { createFault, createOptionFault, type Fault, SECRET_REF_PLACEHOLDER } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import type { MountRequest } from './mount-request.ts'

/** Kubelet's keys of the pod's fsGroup: up to 1.14, and since (flexvolume/util.go, driver-call.go). */
const FS_GROUP_OPTION_KEYS = ['kubernetes.io/fsGroup', 'kubernetes.io/mounterArgs.FsGroup'] as const

// chown(2) does not change the group for (gid_t)-1, so it is no valid group.
const MAX_GROUP_ID = 4294967294

/** Parses a group number as Kubernetes writes it; -1 means none. Returns undefined if it is not a group. */
export function parseGroupId(text: string): number | 'none' | undefined {
  if (text === '-1') return 'none'
  if (!/^(0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const group = Number(text)
  return group <= MAX_GROUP_ID ? group : undefined
}

/** Reads the pod's group from both keys; undefined: no group is requested. */
export function parseFsGroup(options: ReadonlyMap<string, unknown>): { group: number | undefined; faults: Fault[] } {
  const values = FS_GROUP_OPTION_KEYS.flatMap((key) => {
    const text = options.get(key)
    return typeof text === 'string' ? [{ key, text, value: parseGroupId(text) }] : []
  })
  const faults = values
    .filter(({ value }) => value === undefined)
    .map(({ key, text }) =>
      createOptionFault(
        'group-invalid',
        key,
        `is ${quoteValue(text)}`,
        `a group is a decimal number from 0 to ${MAX_GROUP_ID} without sign, leading zeros or exponent; set the pod's securityContext.fsGroup to one, or leave it out`,
      ),
    )
  const [first, second] = values
  if (first && second && first.value !== second.value) {
    faults.push(
      createFault(
        'group-invalid',
        `options "${first.key}" (${quoteValue(first.text)}) and "${second.key}" (${quoteValue(second.text)}) differ`,
        'keep one',
      ),
    )
  }
  return { group: typeof first?.value === 'number' ? first.value : undefined, faults }
}

type OptionTexts = Readonly<Record<string, string | undefined>>

/** Options that need one ownership, which `auto` may choose. */
const REQUIRED_OWNERSHIP_BY_OPTION = {
  groupAccess: 'walk',
  fsGroupChangePolicy: 'walk',
  restoreOnUnmount: 'walk',
  idmapFrom: 'idmap',
  setGid: 'idmap',
} as const

/**
 * Returns faults of options that exclude each other.
 * @param uncertainKeys keys whose intended value is unknown
 */
export function findOptionContradictions(
  options: OptionTexts,
  { ownership, mountOptions }: MountRequest,
  uncertainKeys: ReadonlySet<string>,
): Fault[] {
  const { idmapFrom } = options
  const faults: Fault[] = []
  if (idmapFrom !== undefined && typeof parseGroupId(idmapFrom) !== 'number') {
    faults.push(
      createOptionFault(
        'option-contradiction',
        'idmapFrom',
        `is ${quoteValue(idmapFrom)}`,
        `write the group that the files have on disk, a decimal number from 0 to ${MAX_GROUP_ID}`,
      ),
    )
  }
  for (const [key, required] of Object.entries(REQUIRED_OWNERSHIP_BY_OPTION)) {
    const value = options[key]
    const isUnused = value === undefined || value === 'false'
    if (isUnused || uncertainKeys.has('ownership') || ownership === required || ownership === 'auto') continue
    faults.push(
      createOptionFault(
        'option-contradiction',
        key,
        `is ${quoteValue(value)} but ownership is ${quoteValue(ownership)}`,
        `set ownership to "${required}" or "auto", or leave ${key} out`,
      ),
    )
  }
  if (options['kubernetes.io/readwrite'] === 'ro' && mountOptions.includes('rw')) {
    faults.push(
      createOptionFault('mount-options', 'mountOptions', 'has rw but the volume is readOnly', 'leave one of them out'),
    )
  }
  return faults
}

const createSubmountsFault = (reason: string, remedy: string) =>
  createOptionFault('option-contradiction', 'submounts', reason, remedy)

/** Only a directory of the node has mounts inside, and each of them would need a group of its own. */
export function findSubmountFaults(
  { submounts, fsType, ownership }: MountRequest,
  uncertainKeys: ReadonlySet<string>,
): Fault[] {
  if (submounts === undefined) return []
  if (fsType !== 'bind' && !uncertainKeys.has('kubernetes.io/fsType')) {
    return [
      createSubmountsFault(
        `is ${quoteValue(submounts)} but fsType is ${quoteValue(fsType)}`,
        'leave submounts out, it is for directories of the node (bind)',
      ),
    ]
  }
  if (submounts !== 'include' || ownership === 'none' || uncertainKeys.has('ownership')) return []
  return [
    createSubmountsFault(
      `is "include" but ownership is ${quoteValue(ownership)}, which concerns the source's own file system alone`,
      'leave ownership out',
    ),
  ]
}

// <root-dir>/pods/<uid>/volumes/<vendor>~<driver>/<name>, and /mount below that of a CSI volume. A static pod's uid is
// a hash without hyphens.
const POD_UID_PATTERN =
  /\/pods\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\/volumes\/(?:kubernetes\.io~csi\/[^/]+\/mount|[^/]+~[^/]+\/[^/]+)$/

/** Returns the pod uid in a mount directory of kubelet; undefined for other directories. */
export function parsePodUid(directory: string): string | undefined {
  return POD_UID_PATTERN.exec(directory)?.[1]
}

/**
 * A pod may have written the options itself, but the directory is kubelet's. If it names a pod, the options must name
 * the same one: only the API server prevents pods from setting kubelet's keys (validateFlexVolumeSource).
 */
export function findPodUidFaults(directory: string, options: OptionTexts): Fault[] {
  const uid = options['kubernetes.io/pod.uid']
  const expected = parsePodUid(directory)
  if (expected === undefined || uid === expected) return []
  return [
    createOptionFault(
      'pod-uid',
      'kubernetes.io/pod.uid',
      `is ${quoteValue(uid)}, but the mount directory is that of pod ${expected}`,
      `leave the keys of kubelet's out of the volume's options`,
    ),
  ]
}

/** The keys of a Secret that a kind accepts: these, or those that a rule of the node names. */
export type AcceptedSecretKeys = readonly string[] | 'by rule'

/** Refuses keys that a kind would ignore, because its server or program would not get the value. */
export function findSecretKeyFaults(
  keys: readonly string[],
  kind: { name: string; secretKeys?: AcceptedSecretKeys } | undefined,
): Fault[] {
  if (kind === undefined || kind.secretKeys === 'by rule') return []
  const { name, secretKeys: taken = [] } = kind
  const unknown = keys.filter((key) => !taken.includes(key))
  if (unknown.length === 0) return []
  const takes =
    taken.length === 0
      ? `it takes none, leave out ${SECRET_REF_PLACEHOLDER}`
      : `it takes ${taken.join(', ')}, remove the others`
  return [createFault('secret', `the Secret has ${quoteValue(unknown.join(', '))}, which ${name} does not take`, takes)]
}
