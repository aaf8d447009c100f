import { quoted } from '../refusal/refusal.ts'

/** Kubelet's names for the pod's fsGroup: up to 1.14, and since (flexvolume/util.go, driver-call.go). */
const FS_GROUP_KEYS = ['kubernetes.io/fsGroup', 'kubernetes.io/mounterArgs.FsGroup'] as const

// (gid_t)-1 means "leave the group" to chown(2), so it can be no group.
const LARGEST_GROUP = 4294967294

/** A group number as Kubernetes writes it; -1 stands for none. Undefined: not a group. */
export function parseGroup(text: string): number | 'none' | undefined {
  if (text === '-1') return 'none'
  if (!/^(0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const group = Number(text)
  return group <= LARGEST_GROUP ? group : undefined
}

/** The pod's group out of both keys; undefined when no group is asked for. */
export function fsGroupOf(options: ReadonlyMap<string, string>): { group: number | undefined; faults: string[] } {
  const given = FS_GROUP_KEYS.flatMap((key) => {
    const text = options.get(key)
    return text === undefined ? [] : [{ key, text, value: parseGroup(text) }]
  })
  const faults = given
    .filter(({ value }) => value === undefined)
    .map(
      ({ key, text }) =>
        `option "${key}" is ${quoted(text)}: a group is a decimal number from 0 to ${LARGEST_GROUP} without sign, leading zeros or exponent; ` +
        "set the pod's securityContext.fsGroup to one, or leave it out",
    )
  const [first, second] = given
  if (first && second && first.value !== second.value) {
    faults.push(
      `options "${first.key}" (${quoted(first.text)}) and "${second.key}" (${quoted(second.text)}) differ: keep one`,
    )
  }
  return { group: typeof first?.value === 'number' ? first.value : undefined, faults }
}
