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
): string[] {
  const { idmapFrom } = options
  const faults: string[] = []
  if (idmapFrom !== undefined && typeof parseGroup(idmapFrom) !== 'number') {
    faults.push(
      `option "idmapFrom" is ${quoted(idmapFrom)}: write the group that the files have on disk, a decimal number from 0 to 4294967294`,
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
      `option "${key}" is ${quoted(value)} but ownership is ${quoted(ownership)}: set ownership to "${required}" or "auto", or leave ${key} out`,
    )
  }
  if (options['kubernetes.io/readwrite'] === 'ro' && mountOptions.includes('rw')) {
    faults.push('option "mountOptions" has rw but the volume is readOnly: leave one of them out')
  }
  return faults
}

/** Only a directory of the node has mounts inside, and each of them would need a group of its own. */
export function findSubmountFaults(
  { submounts, fsType, ownership }: MountRequest,
  uncertainKeys: ReadonlySet<string>,
): string[] {
  if (submounts === undefined) return []
  if (fsType !== 'bind' && !uncertainKeys.has('kubernetes.io/fsType')) {
    return [
      `option "submounts" is ${quoted(submounts)} but fsType is ${quoted(fsType)}: leave submounts out, it is for directories of the node (bind)`,
    ]
  }
  if (submounts !== 'include' || ownership === 'none' || uncertainKeys.has('ownership')) return []
  return [
    `option "submounts" is "include" but ownership is ${quoted(ownership)}, which concerns the source's own file system alone: leave ownership out`,
  ]
}
