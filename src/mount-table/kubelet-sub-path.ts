import { type MountRow, parseMountinfo } from './mountinfo.ts'
import { createLocationFinder } from './tree-location.ts'

/** A bind mount that kubelet made for a `subPath` of a ConfigMap, Secret, projected or downward API volume. */
export interface KubeletSubPath {
  row: MountRow
  /** Where kubelet's atomic writer writes. */
  volumeDirectory: string
  /** What is bound, in the volume directory, as its user sees it: `config`, `dir/config`, `..data` for all of it. */
  subPath: string
  /** Its source was deleted by an atomic update. */
  stale: boolean
  /** Why a stale one must be left alone. */
  doubt: string | undefined
}

/** Plugins whose volumes kubelet's atomic writer writes: the directories' names below `pods/UID/volumes`. */
export const ATOMIC_WRITER_PLUGINS: readonly string[] = ['configmap', 'secret', 'projected', 'downward-api'].map(
  (plugin) => `kubernetes.io~${plugin}`,
)

// UID, volume, container, index
const BIND_PATH = /^\/pods\/([^/]+)\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/
// The volume, its dated directory (time to the second, then what Go's os.MkdirTemp adds), the rest.
const DATED_ROOT = /^((?:\/.+)?)\/\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+(?:\/(.+))?$/
/** How mountinfo marks a mount whose root was deleted. */
export const DELETED = '//deleted'
const DATA = '..data'

/** Reports another mount at a bind's place: the topmost one alone can be replaced. */
export function createCoverFinder(
  rows: readonly MountRow[],
  locationOf: ReturnType<typeof createLocationFinder>,
): (row: MountRow) => string | undefined {
  let byMountPoint: Map<string, MountRow[]> | undefined
  return (row) => {
    const shown = locationOf(row.mountPoint)
    const isHidden = shown?.device !== row.device || shown.path !== row.root
    byMountPoint ??= Map.groupBy(rows, ({ mountPoint }) => mountPoint)
    return isHidden || (byMountPoint.get(row.mountPoint)?.length ?? 0) > 1
      ? 'another mount is over or under it'
      : undefined
  }
}

/**
 * Kubelet's sub path binds whose source lies in a dated directory of the very volume that their path names: on the
 * file system of kubelet's directory, or in a tmpfs mounted at the volume directory. All other mounts are passed over.
 * @param kubeletDir kubelet's root directory, as mountinfo writes it: absolute, without links
 */
export function parseKubeletSubPaths(table: string | readonly MountRow[], kubeletDir: string): KubeletSubPath[] {
  const rows = typeof table === 'string' ? parseMountinfo(table) : table
  const mountPoints = new Set(rows.map(({ mountPoint }) => mountPoint))
  const locationOf = createLocationFinder(rows)
  const findCover = createCoverFinder(rows, locationOf)

  /** Asked for stale binds only: on a node with thousands of mounts a place takes long to find. */
  function findDoubt(row: MountRow, volumeDirectory: string, volumeRoot: string): string | undefined {
    const volume = locationOf(volumeDirectory)
    if (volume?.device !== row.device || volume.path !== volumeRoot) return 'its volume directory is another one now'
    return findCover(row)
  }

  return rows.flatMap((row): KubeletSubPath[] => {
    if (!row.mountPoint.startsWith(`${kubeletDir}/pods/`)) return []
    const [, pod, volume] = BIND_PATH.exec(row.mountPoint.slice(kubeletDir.length)) ?? []
    const stale = row.root.endsWith(DELETED)
    const [, volumeRoot, subPath] = DATED_ROOT.exec(stale ? row.root.slice(0, -DELETED.length) : row.root) ?? []
    if (pod === undefined || volume === undefined || volumeRoot === undefined) return []
    const inKubeletDir = ATOMIC_WRITER_PLUGINS.map((plugin) => `/pods/${pod}/volumes/${plugin}/${volume}`).find(
      (path) => (volumeRoot === '' ? mountPoints.has(`${kubeletDir}${path}`) : volumeRoot.endsWith(path)),
    )
    if (inKubeletDir === undefined) return []
    const volumeDirectory = `${kubeletDir}${inKubeletDir}`
    const doubt = stale ? findDoubt(row, volumeDirectory, volumeRoot) : undefined
    return [{ row, volumeDirectory, subPath: subPath ?? DATA, stale, doubt }]
  })
}
