import { closing, errorCode, type Handle, type Host, isDirectory } from '../host/host.ts'
import { layersAtPath } from '../mount-table/layers.ts'
import { isMounted, type MountPoint, statPoint, targetOf } from '../mount-table/mount-point.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import { isSameLocation, locationOfRow, locationsFrom, type TreeLocation } from '../mount-table/tree-location.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'

// As kubelet makes them: volumes (pkg/volume/flexvolume/util.go), and files for subPaths (pkg/volume/util/subpath).
export const DIRECTORY_MODE = 0o750
const FILE_MODE = 0o640

// open_tree(2) says ENOSPC where fs.mount-max is reached.
const EXHAUSTED_RESOURCE_CODES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC'])

export function attachAt({ inodes, mounts }: Host, { parent, name }: MountPoint, tree: Handle): void {
  const target = inodes.openEntry(parent, name)
  using _ = closing(inodes, target)
  mounts.attach(tree, target)
}

/**
 * Removes every mount at the point. What still uses one keeps its view of it.
 * @param findsUse whether to try first without that
 * @returns whether something used one of them; false without `findsUse`
 */
export function detachAll(host: Host, point: MountPoint, findsUse = false): boolean {
  let isInUse = false
  for (let there = statPoint(host, point); isMounted(there); there = statPoint(host, point)) {
    try {
      if (findsUse && host.mounts.unmount(point.parent, point.name)) continue
      isInUse = findsUse
      host.mounts.detach(point.parent, point.name)
    } catch (error) {
      // A directory that cannot be looked at is not always a mount.
      if (there === 'broken' && errorCode(error) === 'EINVAL') break
      throw error
    }
  }
  return isInUse
}

/**
 * Makes the point an empty directory or an empty file. Only what is empty, or missing, gives way; a death in between
 * leaves it missing, which kubelet takes for unmounted and makes anew.
 * @throws {Refusal} for what nobody made to mount on
 */
export function setTarget(host: Host, point: MountPoint, wanted: 'directory' | 'file'): void {
  const { inodes } = host
  const { parent, name, path } = point
  const stat = statPoint(host, point)
  const there = stat === 'broken' ? 'directory' : targetOf(point, stat)
  if (there === wanted) return
  if (wanted === 'directory') {
    if (there === 'file') inodes.removeFile(parent, name)
    inodes.createDirectory(parent, name, DIRECTORY_MODE)
    return
  }
  try {
    if (there === 'directory') inodes.removeDirectory(parent, name)
  } catch (error) {
    if (errorCode(error) !== 'ENOTEMPTY') throw error
    throw new Refusal(`mount directory ${quoted(path)} is not empty, so no file can take its place: empty it`)
  }
  try {
    inodes.createFile(parent, name, FILE_MODE)
  } catch (error) {
    inodes.createDirectory(parent, name, DIRECTORY_MODE)
    throw error
  }
}

/** A clone of the mount at a point, kept while the mount itself has to go before the next one can come. */
export interface SavedMount extends Disposable {
  /** Does nothing where the mount itself has stayed. */
  restore(): void
}

/**
 * Undefined where nothing that is worth keeping is mounted.
 * @throws {SystemError} where the node is out of something: then the mount is not to be taken away
 */
export function saveMount(host: Host, point: MountPoint): SavedMount | undefined {
  const { inodes, mounts } = host
  try {
    const root = inodes.openEntry(point.parent, point.name)
    using _ = closing(inodes, root)
    const saved = inodes.statMountPoint(root)
    if (!saved.mountRoot) return undefined
    // With what the mount shows of the mounts inside of its source.
    const clone = mounts.cloneTree(root, true)
    return {
      restore() {
        const there = statPoint(host, point)
        if (there !== 'broken' && there?.mountRoot && there.mountId === saved.mountId) return
        // A layer that was covered is mounted on as it is.
        if (!isMounted(there)) setTarget(host, point, isDirectory(saved) ? 'directory' : 'file')
        attachAt(host, point, clone)
      },
      ...closing(inodes, clone),
    }
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined || EXHAUSTED_RESOURCE_CODES.has(code)) throw error
    // A mount that does not answer, or cannot be cloned.
    return undefined
  }
}

/**
 * Puts a detached tree in the place of all that is mounted at the point. With MOVE_MOUNT_BENEATH there is no moment
 * without a mount; an older kernel has a short one.
 * @param source what the tree shows, as a path, where it has one
 */
export function replaceAt(host: Host, point: MountPoint, tree: Handle, source: string | undefined): void {
  const { parent, name, path } = point
  const wanted = source === undefined ? undefined : locationsFrom(host.mounts.table())(source)
  let layers = layersAtPath(host, path)
  while (mayShowBelow(layers, wanted)) {
    host.mounts.detach(parent, name)
    layers = readRemainingLayers(host, point, layers)
  }
  if (layers.length > 0 && attachBeneath(host, point, tree)) host.mounts.detach(parent, name)
  else replaceWithGap(host, point, tree)
}

/**
 * The layers that are left after one umount, which takes several where the source's mount is shared. The mount table is
 * read again only if the topmost mount is in none of those that were there.
 * @param layers is changed
 */
function readRemainingLayers(host: Host, { parent, name, path }: MountPoint, layers: MountRow[]): MountRow[] {
  const { inodes, mounts } = host
  const top = inodes.openEntry(parent, name)
  using _ = closing(inodes, top)
  const topId = mounts.tableId(top)
  for (layers.pop(); layers.length > 0; layers.pop()) if (layers.at(-1)?.id === topId) return layers
  return inodes.statMountPoint(top).mountRoot ? layersAtPath(host, path) : []
}

function attachBeneath({ inodes, mounts }: Host, { parent, name }: MountPoint, tree: Handle): boolean {
  const old = inodes.openEntry(parent, name)
  using _ = closing(inodes, old)
  return mounts.attachBeneath(tree, old)
}

/** The kernel says the same whether it has no MOVE_MOUNT_BENEATH or the two roots are not of one type. */
function replaceWithGap(host: Host, point: MountPoint, tree: Handle): void {
  // Not asked of a daemon that serves it: that may hang.
  const type = isDirectory(host.inodes.statMountPoint(tree)) ? 'directory' : 'file'
  using saved = saveMount(host, point)
  try {
    detachAll(host, point)
    setTarget(host, point, type)
    attachAt(host, point, tree)
  } catch (error) {
    saved?.restore()
    throw error
  }
}

/**
 * Whether users may see what lies under the topmost layer for a moment: the same directory, or the one that comes next.
 * Any other layer stays hidden until the unmount: nothing but the topmost can be taken away.
 */
function mayShowBelow(layers: readonly MountRow[], wanted: TreeLocation | undefined): boolean {
  const [below, top] = layers.slice(-2).map(locationOfRow)
  if (below === undefined || top === undefined) return false
  return isSameLocation(below, top) || (wanted !== undefined && isSameLocation(below, wanted))
}
