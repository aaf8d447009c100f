import type { Snapshot } from '../crash/volume.ts'

type Inode = Snapshot[string]

/** Returns the paths of the inodes that differ. */
export function listDifferences(now: Snapshot, wanted: Snapshot): string[] {
  return [...new Set([...Object.keys(wanted), ...Object.keys(now)])].filter(
    (path) => JSON.stringify(now[path]) !== JSON.stringify(wanted[path]),
  )
}

/**
 * Returns the paths of the inodes that have more rights than in one of two states, or anything that neither has. Between
 * the two states set-id bits and a capability may be missing.
 */
export function listWidened(now: Snapshot, before: Snapshot, after: Snapshot): string[] {
  const isWrong = (path: string) => {
    const [inode, one, other] = [now[path], before[path], after[path]]
    return inode === undefined || one === undefined || other === undefined || !isBetween(inode, one, other)
  }
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].filter(isWrong)
}

function isBetween(inode: Inode, before: Inode, after: Inode): boolean {
  const bits = ({ mode }: Inode) => Number.parseInt(mode, 8)
  const allowed = bits(before) | bits(after)
  const needed = bits(before) & bits(after) & 0o777
  const known = new Set([...before.attributes, ...after.attributes])
  const isCapability = (attribute: string) => attribute.startsWith('security.capability=')
  const kept = before.attributes.filter((one) => after.attributes.includes(one) && !isCapability(one))
  return (
    (bits(inode) & ~allowed) === 0 &&
    (bits(inode) & needed) === needed &&
    [before.gid, after.gid].includes(inode.gid) &&
    inode.uid === before.uid &&
    inode.attributes.every((attribute) => known.has(attribute)) &&
    kept.every((attribute) => inode.attributes.includes(attribute))
  )
}

/** Shows the first of the inodes that differ. */
export function formatDifferences(paths: readonly string[], now: Snapshot, wanted: Snapshot): string {
  const lines = paths.slice(0, 10).map((path) => {
    return `${path}: ${JSON.stringify(now[path])} instead of ${JSON.stringify(wanted[path])}`
  })
  return [...lines, ...(paths.length > 10 ? [`and ${paths.length - 10} more`] : [])].join('\n')
}
