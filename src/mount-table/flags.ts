/** MOUNT_ATTR_ bits of mount_setattr(2), include/uapi/linux/mount.h. */
export const RDONLY = 0x1
const NOSUID = 0x2
const NODEV = 0x4
const NOEXEC = 0x8
const ATIME_MASK = 0x70
const NOATIME = 0x10
const STRICTATIME = 0x20
const NODIRATIME = 0x80
export const NOSYMFOLLOW = 0x200000

interface Flag {
  /** Options of one family contradict each other. */
  family: string
  set: number
  clear: number
}

/**
 * The options every kind of mount knows. The loosening ones (rw, suid, dev, exec) only mean "do not restrict":
 * they never clear what the source's own mount has, so a pod cannot undo the administrator's noexec.
 */
export const FLAGS: ReadonlyMap<string, Flag> = new Map([
  ['ro', { family: 'write', set: RDONLY, clear: 0 }],
  ['rw', { family: 'write', set: 0, clear: 0 }],
  ['nosuid', { family: 'suid', set: NOSUID, clear: 0 }],
  ['suid', { family: 'suid', set: 0, clear: 0 }],
  ['nodev', { family: 'dev', set: NODEV, clear: 0 }],
  ['dev', { family: 'dev', set: 0, clear: 0 }],
  ['noexec', { family: 'exec', set: NOEXEC, clear: 0 }],
  ['exec', { family: 'exec', set: 0, clear: 0 }],
  ['relatime', { family: 'atime', set: 0, clear: ATIME_MASK }],
  ['noatime', { family: 'atime', set: NOATIME, clear: ATIME_MASK }],
  ['strictatime', { family: 'atime', set: STRICTATIME, clear: ATIME_MASK }],
  ['nodiratime', { family: 'diratime', set: NODIRATIME, clear: 0 }],
  ['nosymfollow', { family: 'symfollow', set: NOSYMFOLLOW, clear: 0 }],
])

/** What a pod may use unless the node's configuration says otherwise: suid and dev are the administrator's to grant. */
export const ORDINARY_FLAGS: readonly string[] = [...FLAGS.keys()].filter((name) => name !== 'suid' && name !== 'dev')

const ALWAYS = ['nosuid', 'nodev']

/** The attributes of a mount out of its options (those that are no flags are the file system's own and passed over). */
export function mountFlags(options: readonly string[], readOnly: boolean): { set: number; clear: number } {
  const named = options.flatMap((option) => FLAGS.get(option) ?? [])
  const families = new Set(named.map((flag) => flag.family))
  const always = ALWAYS.flatMap((option) => FLAGS.get(option) ?? []).filter((flag) => !families.has(flag.family))
  const result = { set: readOnly ? RDONLY : 0, clear: 0 }
  for (const flag of [...always, ...named]) {
    result.set |= flag.set
    result.clear |= flag.clear
  }
  return result
}

/** Pairs of options that cannot both hold, in the order given. */
export function contradictingFlags(options: readonly string[]): [string, string][] {
  const first = new Map<string, string>()
  const pairs: [string, string][] = []
  for (const option of options) {
    const family = FLAGS.get(option)?.family
    if (family === undefined) continue
    const earlier = first.get(family)
    if (earlier === undefined) first.set(family, option)
    else if (earlier !== option) pairs.push([earlier, option])
  }
  return pairs
}

/** The attributes a mount has by its row in mountinfo, to be given to another that takes its place. */
export function flagsOfRow(options: readonly string[]): { set: number; clear: number } {
  const atime = options.find((option) => FLAGS.get(option)?.family === 'atime')
  const result = { set: 0, clear: 0 }
  // The kernel writes relatime and noatime; strictatime is neither.
  for (const flag of [...options, atime ?? 'strictatime'].flatMap((option) => FLAGS.get(option) ?? [])) {
    result.set |= flag.set
    result.clear |= flag.clear
  }
  return result
}
