import { createOptionFault, type Fault } from '../errors/fault.ts'
import { quoted } from '../errors/refusal.ts'
import { parseGroup } from './fs-group.ts'
import type { MountRequest } from './mount-request.ts'

type OptionTexts = Readonly<Record<string, string | undefined>>

/** Options that need one ownership, which `auto` may choose. */
const REQUIRED_OWNERSHIP = {
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
export function findContradictions(
  options: OptionTexts,
  { ownership, mountOptions }: MountRequest,
  uncertainKeys: ReadonlySet<string>,
): Fault[] {
  const { idmapFrom } = options
  const faults: Fault[] = []
  if (idmapFrom !== undefined && typeof parseGroup(idmapFrom) !== 'number') {
    faults.push(
      createOptionFault(
        'option-contradiction',
        'idmapFrom',
        `is ${quoted(idmapFrom)}`,
        'write the group that the files have on disk, a decimal number from 0 to 4294967294',
      ),
    )
  }
  for (const [key, required] of Object.entries(REQUIRED_OWNERSHIP)) {
    const value = options[key]
    if (
      uncertainKeys.has('ownership') ||
      value === undefined ||
      value === 'false' ||
      ownership === required ||
      ownership === 'auto'
    )
      continue
    faults.push(
      createOptionFault(
        'option-contradiction',
        key,
        `is ${quoted(value)} but ownership is ${quoted(ownership)}`,
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

/** Only a directory of the node has mounts inside, and each of them would need a group of its own. */
export function findSubmountFaults(
  { submounts, fsType, ownership }: MountRequest,
  uncertainKeys: ReadonlySet<string>,
): Fault[] {
  if (submounts === undefined) return []
  if (fsType !== 'bind' && !uncertainKeys.has('kubernetes.io/fsType')) {
    return [
      createOptionFault(
        'option-contradiction',
        'submounts',
        `is ${quoted(submounts)} but fsType is ${quoted(fsType)}`,
        'leave submounts out, it is for directories of the node (bind)',
      ),
    ]
  }
  if (submounts !== 'include' || ownership === 'none' || uncertainKeys.has('ownership')) return []
  return [
    createOptionFault(
      'option-contradiction',
      'submounts',
      `is "include" but ownership is ${quoted(ownership)}, which concerns the source's own file system alone`,
      'leave ownership out',
    ),
  ]
}

// <root-dir>/pods/<uid>/volumes/<vendor>~<driver>/<name>, and /mount below that of a CSI volume. A static pod's uid is
// a hash without hyphens.
const POD_UID =
  /\/pods\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\/volumes\/(?:kubernetes\.io~csi\/[^/]+\/mount|[^/]+~[^/]+\/[^/]+)$/

/** Returns the pod uid in a mount directory of kubelet; undefined for other directories. */
export function parsePodUid(directory: string): string | undefined {
  return POD_UID.exec(directory)?.[1]
}

/**
 * A pod may have written the options itself, but the directory is kubelet's. If it names a pod, the options must name
 * the same one: only the API server prevents pods from setting kubelet's keys (validateFlexVolumeSource).
 */
export function findUidFaults(directory: string, options: OptionTexts): Fault[] {
  const uid = options['kubernetes.io/pod.uid']
  const expected = parsePodUid(directory)
  if (expected === undefined || uid === expected) return []
  return [
    createOptionFault(
      'pod-uid',
      'kubernetes.io/pod.uid',
      `is ${quoted(uid)}, but the mount directory is that of pod ${expected}`,
      `leave the keys of kubelet's out of the volume's options`,
    ),
  ]
}
