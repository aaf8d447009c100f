import { stat } from 'node:fs/promises'

/**
 * Whether a target lies below the pods' directory of kubelet. Another spelling of kubelet's directory, such as a link or a bind
 * mount, is recognized by the inode of its `pods`.
 * @param kubeletDirectory kubelet's --root-dir
 * @param path absolute and normal
 */
export async function isBelowPods(kubeletDirectory: string, path: string): Promise<boolean> {
  const pods = `${kubeletDirectory === '/' ? '' : kubeletDirectory}/pods`
  if (path.startsWith(`${pods}/`)) return true
  const parts = path.split('/')
  const prefixes = parts.flatMap((part, at) =>
    part === 'pods' && at < parts.length - 1 ? [parts.slice(0, at + 1).join('/')] : [],
  )
  if (prefixes.length === 0) return false
  const wanted = await findInode(pods)
  if (wanted === undefined) return false
  for (const prefix of prefixes.slice(0, MAX_PREFIXES)) if ((await findInode(prefix)) === wanted) return true
  return false
}

/** A path of kubelet's has one or two directories of this name. */
const MAX_PREFIXES = 8

async function findInode(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
