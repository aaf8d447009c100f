import { createFault, createOptionFault, type Fault } from '../errors/fault.ts'
import { quoted } from '../errors/refusal.ts'

/** Kubelet's keys of the pod's fsGroup: up to 1.14, and since (flexvolume/util.go, driver-call.go). */
const FS_GROUP_KEYS = ['kubernetes.io/fsGroup', 'kubernetes.io/mounterArgs.FsGroup'] as const

// chown(2) does not change the group for (gid_t)-1, so it is no valid group.
const MAX_GROUP = 4294967294

/** Parses a group number as Kubernetes writes it; -1 means none. Returns undefined if it is not a group. */
export function parseGroup(text: string): number | 'none' | undefined {
  if (text === '-1') return 'none'
  if (!/^(0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const group = Number(text)
  return group <= MAX_GROUP ? group : undefined
}

/** Reads the pod's group from both keys; undefined: no group is requested. */
export function parseFsGroup(options: ReadonlyMap<string, string>): { group: number | undefined; faults: Fault[] } {
  const values = FS_GROUP_KEYS.flatMap((key) => {
    const text = options.get(key)
    return text === undefined ? [] : [{ key, text, value: parseGroup(text) }]
  })
  const faults = values
    .filter(({ value }) => value === undefined)
    .map(({ key, text }) =>
      createOptionFault(
        'group-invalid',
        key,
        `is ${quoted(text)}`,
        `a group is a decimal number from 0 to ${MAX_GROUP} without sign, leading zeros or exponent; set the pod's securityContext.fsGroup to one, or leave it out`,
      ),
    )
  const [first, second] = values
  if (first && second && first.value !== second.value) {
    faults.push(
      createFault(
        'group-invalid',
        `options "${first.key}" (${quoted(first.text)}) and "${second.key}" (${quoted(second.text)}) differ`,
        'keep one',
      ),
    )
  }
  return { group: typeof first?.value === 'number' ? first.value : undefined, faults }
}
