import { type MountRow, parseMountinfo } from './mountinfo.ts'
import { createLocationFinder } from './tree-location.ts'

/** A bind mount that kubelet made for a `subPath` of a ConfigMap, Secret, projected or downward API volume. */
export interface KubeletSubPath {
  row: MountRow
  /** The directory that kubelet's atomic writer writes. */
  volumeDirectory: string
  /** The bound path inside the volume directory, as its user sees it: `config`, `dir/config`, or `..data` for all of it. */
  subPath: string
  /** True if an atomic update has deleted its source. */
  stale: boolean
  /** The reason for which a stale bind mount must be skipped. */
  doubt: string | undefined
}

/** The plugins whose volumes kubelet's atomic writer writes, as directory names below `pods/UID/volumes`. */
export const ATOMIC_WRITER_PLUGINS: readonly string[] = ['configmap', 'secret', 'projected', 'downward-api'].map(
  (plugin) => `kubernetes.io~${plugin}`,
)

// The groups and wildcards match the pod's UID, the volume, the container and the index.
const BIND_PATH = /^\/pods\/([^/]+)\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/
// The path consists of the volume, its dated directory and the rest. Go's os.MkdirTemp adds the digits after the seconds.
const DATED_ROOT = /^((?:\/.+)?)\/\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+(?:\/(.+))?$/
/** The suffix with which mountinfo marks a mount whose root was deleted. */
export const DELETED = '//deleted'
const DATA = '..data'

/** Creates a function that reports another mount at the mount point of a bind: only a single, visible mount can be replaced. */
export function createCoverFinder(
  rows: readonly MountRow[],
  findLocation: ReturnType<typeof createLocationFinder>,
): (row: MountRow) => string | undefined {
  let byMountPoint: Map<string, MountRow[]> | undefined
  return (row) => {
    const shown = findLocation(row.mountPoint)
    const isHidden = shown?.device !== row.device || shown.path !== row.root
    byMountPoint ??= Map.groupBy(rows, ({ mountPoint }) => mountPoint)
    return isHidden || (byMountPoint.get(row.mountPoint)?.length ?? 0) > 1
      ? 'another mount is over or under it'
      : undefined
  }
}

/**
 * Finds kubelet's subPath binds whose source lies in a dated directory of the volume that their path names. That volume is on
 * the file system of kubelet's directory, or a tmpfs mounted at the volume directory. All other mounts are skipped.
 * @param kubeletDir kubelet's root directory, as mountinfo writes it: absolute, without links
 */
export function parseKubeletSubPaths(table: string | readonly MountRow[], kubeletDir: string): KubeletSubPath[] {
  const rows = typeof table === 'string' ? parseMountinfo(table) : table
  const mountPoints = new Set(rows.map(({ mountPoint }) => mountPoint))
  const findLocation = createLocationFinder(rows)
  const findCover = createCoverFinder(rows, findLocation)

  /** Called for stale binds only: on a node with thousands of mounts, finding a location takes long. */
  function findDoubt(row: MountRow, volumeDirectory: string, volumeRoot: string): string | undefined {
    const volume = findLocation(volumeDirectory)
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
