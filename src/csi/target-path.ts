import { stat } from 'node:fs/promises'

/**
 * Returns whether a target lies below kubelet's pods directory. Other paths to that directory, such as links and bind mounts,
 * are recognized by its inode.
 * @param kubeletDirectory kubelet's --root-dir
 * @param path absolute and normalized
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

/** Kubelet's paths have one or two directories named `pods`. */
const MAX_PREFIXES = 8

async function findInode(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
