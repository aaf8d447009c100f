import { type AllowRule, isPathNamedByRule } from '../config/rule.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import type { Handle } from '../kernel/host.ts'
import { type MountRow, type MountTableSnapshot, parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { findShownPaths, type ShownPath } from '../kernel/mount-table/submounts.ts'
import {
  createHandleLocationFinder,
  createLocationFinder,
  resolveNfsRoot,
  resolvePathInMount,
  resolveRelativePath,
  type TreeLocation,
  toPathPrefix,
} from '../kernel/mount-table/tree-location.ts'
import { hasMountRecord } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { isPathOverlappingRecords } from './kind/source-path.ts'

/** Kubelet's directories in which kubelet and CSI drivers mount (kubernetes pkg/kubelet/config/defaults.go). */
const KUBELET_MOUNT_DIRECTORIES = ['pods', 'plugins']
const KUBELET_MOUNT_FORM =
  /\/pods\/[^/]+\/(volumes|volume-subpaths|volumeDevices|plugins)\/|\/plugins\/kubernetes\.io\/|\/kubelet\/(pods|plugins)\//

/**
 * Whether a mount is kubelet's or modekeep's own, and not the node's. A pod whose source contains such a mount does not need
 * it, and must not see it.
 * @param kubeletDirectory kubelet's root directory; undefined: kubelet's mounts are found by their names alone
 */
export function isInternalMount(
  session: Pick<Session, 'host' | 'config'>,
  { mountPoint }: Pick<MountRow, 'mountPoint'>,
  kubeletDirectory?: string,
): boolean {
  if (KUBELET_MOUNT_FORM.test(mountPoint) || isMountBelowKubelet(mountPoint, kubeletDirectory)) return true
  return isPathOverlappingRecords(mountPoint, session.config) || hasMountRecord(session, mountPoint)
}

function isMountBelowKubelet(mountPoint: string, directory: string | undefined): boolean {
  if (directory === undefined) return false
  return KUBELET_MOUNT_DIRECTORIES.some((name) => mountPoint.startsWith(`${toPathPrefix(directory)}/${name}/`))
}

interface RuleNamedSource {
  /** The root that a pod sees: the source, or the part of it that a subPath names. */
  handle: Handle
  path: string
  /** Kubelet's root directory; undefined: not known. */
  kubeletDirectory: string | undefined
  /** Only paths that some of these rules name are of interest. */
  rules: readonly Pick<AllowRule, 'sources'>[]
}

interface OtherSourcePath {
  /** A path on the node to the root of the pod's volume, or to a directory below that root. */
  path: string
  /** The source that a pod would request for the path. */
  source: string
}

/**
 * Finds the other paths, named by rules, at which mounts of the node show what a source shows, or a part of it. Mounts of pods are left out:
 * no pod may have them as a source.
 * @throws {Refusal} for a source whose mount is not in the table any more, unless this process runs in a chroot
 */
export function findOtherSourcePaths(
  session: Session,
  table: MountTableSnapshot,
  { handle, path: requested, kubeletDirectory, rules }: RuleNamedSource,
): OtherSourcePath[] {
  const shown = createHandleLocationFinder(session.host, table)(handle)
  if (shown === undefined) {
    // The table of a chroot lists the mounts below its root, and not the one that the root lies on.
    if (!parseMountinfo(table.text()).some(({ mountPoint }) => mountPoint === '/')) return []
    throw Refusal.of(
      'source-changed',
      `source ${quoteValue(requested)} was unmounted or removed meanwhile`,
      'it is tried again',
    )
  }
  const { stateDir } = session.config
  const isOfPod = (row: MountRow) =>
    !`${stateDir}/`.startsWith(`${toPathPrefix(row.mountPoint)}/`) && isInternalMount(session, row, kubeletDirectory)
  const isOther = ({ path, row }: ShownPath) =>
    !`${path}/`.startsWith(`${requested}/`) && isPathNamedByRule(rules, path) && !isOfPod(row)
  const found = findShownPaths(table.text(), shown, isOther)
  if (found.length === 0) return []
  const whole = createLocationFinder(parseMountinfo(table.text()).map(resolveNfsRoot))(requested)
  return found.map(({ path, row }) => ({ path, source: resolvePodSource({ path, row }, whole, shown) }))
}

/** Resolves the source that a pod would request: with a subPath that is the directory above the part. */
function resolvePodSource(
  { path, row }: Pick<ShownPath, 'path' | 'row'>,
  whole: TreeLocation | undefined,
  shown: TreeLocation,
): string {
  const within = whole && resolveRelativePath(whole, shown)
  const source = within && whole && resolvePathInMount(row, whole)
  return source && path === `${source}/${within}` ? source : path
}
