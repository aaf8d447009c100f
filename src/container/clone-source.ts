import { quoteValue, Refusal } from '../errors/refusal.ts'
import {
  deferHandleClose,
  FILE_TYPE_MASK,
  getErrno,
  type Handle,
  type Host,
  SYMLINK_TYPE,
  useHandleOrClose,
} from '../kernel/host.ts'
import { CSI_PLUGIN_DIRECTORY, parseSubPathVolume } from '../kernel/mount-table/kubelet-volume.ts'
import { snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import {
  type createHandleLocationFinder,
  type MountedLocation,
  resolveRelativePath,
} from '../kernel/mount-table/tree-location.ts'
import { hasMountRecord } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { openSourceWithoutLinks } from '../volume/kind/source-path.ts'
import type { CloneRequest, ContainerCloneRequest } from './clone-request.ts'
import {
  isPodDirectoryPath,
  type PodIdentity,
  type PodMountContext,
  refuseModekeepFiles,
  refuseVolumesOfOtherPods,
  splitPodPath,
} from './refused-sources.ts'

/** A detached mount, not yet mapped, that becomes a clone. */
export interface CloneSource {
  /** Real path of the mounted directory or file. */
  path: string
  /** Identity of the volume, or of the part that is cloned. */
  identity: string | undefined
  from: number
  /** Group that the clone shows in place of `from`; undefined: `from` itself. */
  to: number | undefined
  readGroup(): number
  /** Root of the volume, which differs from `path` for a subPath. Undefined for modekeep's own volume. */
  root?: { handle: Handle; path: string } | undefined
  /** Handle of the detached mount. Its opener closes it. */
  tree: Handle
  /** The mount that `tree` is a clone of, for messages. Undefined if `tree` is a new mount of type `fsType`. */
  clonedFrom: Handle | undefined
  fsType?: string | undefined
}

export interface CloneSourceContext extends PodMountContext {
  locationOf: ReturnType<typeof createHandleLocationFinder>
}

/**
 * Opens the source of a clone without following links, and clones its mount. Below kubelet's directory only this pod's
 * volumes are opened.
 * @param handles gets the opened handles
 * @param check is called with the opened handle and its real path
 * @throws {Refusal} whose message the caller prefixes with the volume
 */
export function openCloneSource(
  session: Session,
  context: CloneSourceContext,
  { source, group: to }: CloneRequest,
  handles: DisposableStack,
  check: (handle: Handle, path: string) => void,
): CloneSource {
  const { inodes, mounts } = session.host
  const { shown: opened, root, path: rootPath } = openSourceVolume(session, context, source, handles)
  const path = inodes.pathOf(opened)
  refuseModekeepFiles(session, context.table, opened, isPodDirectoryPath(context, source))
  if (hasMountRecord(session, rootPath)) throw createOwnVolumeRefusal(to)
  check(opened, path)
  // The group of the volume's root counts, because a subPath may have another group.
  const readGroup = () => inodes.stat(root).gid
  const from = readGroup()
  const identity = resolveVolumeIdentity(session, opened, inodes.stat(opened))
  const tree = mounts.cloneTree(opened)
  handles.use(deferHandleClose(inodes, tree))
  return {
    path,
    identity,
    from,
    to,
    readGroup,
    root: { handle: root, path: rootPath },
    tree,
    clonedFrom: opened,
  }
}

export interface OpenedSourceVolume {
  /** The directory or file that the container mounts. */
  shown: Handle
  /** Root of the volume, which differs from `shown` for a subPath. */
  root: Handle
  /** Real path of the root. */
  path: string
  /** Path of `shown` below the root; '' for the whole volume. */
  within: string
}

/**
 * Opens a source and the volume that it belongs to. The path of a subPath contains the pod's name of a volume, and kubelet's
 * volume directories have kubelet's names. The mounts' locations therefore decide whether the subPath is a part of the volume.
 * @param handles gets the opened handles
 * @throws {Refusal} whose message the caller prefixes with the volume; also if the subPath is not in the volume
 */
export function openSourceVolume(
  session: Session,
  context: CloneSourceContext,
  source: string,
  handles: DisposableStack,
): OpenedSourceVolume {
  const { host } = session
  const closeLater = (handle: Handle) => {
    handles.use(deferHandleClose(host.inodes, handle))
    return handle
  }
  const shown = closeLater(openSourcePath(session, context, source))
  const volume = findSubPathVolume(context, source)
  if (volume === undefined) return { shown, root: shown, path: host.inodes.pathOf(shown), within: '' }
  const roots = [...openKubeletVolumeRoots(host, context, volume)].map(closeLater)
  const part = context.locationOf(shown)
  if (part === undefined) {
    throw Refusal.of(
      'map-sub-path',
      'has a subPath that is not in the volume any more',
      'the container is created again by kubelet',
    )
  }
  let reason = roots.length === 0 ? VOLUME_UNMOUNTED_REASON : SUB_PATH_OUTSIDE_VOLUME_REASON
  for (const root of roots) {
    const whole = context.locationOf(root)
    const within = whole && resolveRelativePath(whole, part)
    if (whole === undefined || within === undefined) continue
    if (isSubPathAsRestricted(whole, part)) return { shown, root, path: host.inodes.pathOf(root), within }
    reason = LESS_RESTRICTED_SUB_PATH_REASON
  }
  throw Refusal.of('map-sub-path', reason)
}

const VOLUME_UNMOUNTED_REASON =
  'has a subPath of a volume that is not mounted any more: the container is created again by kubelet'
const SUB_PATH_OUTSIDE_VOLUME_REASON =
  'has a subPath of something else than the volume that kubelet has by this name: a hostPath with the name of a PersistentVolume (give the volume another name in the pod), or what is mounted inside of the volume (use a volume for that)'
const LESS_RESTRICTED_SUB_PATH_REASON =
  "has a subPath that is not restricted as the volume's mount is now: delete the pod, its subPaths are mounted anew with it"

const RESTRICTIVE_MOUNT_OPTIONS: readonly string[] = ['ro', 'nosuid', 'nodev', 'noexec', 'nosymfollow', 'idmapped']

/** A subPath that kubelet has bound has the restrictions of the volume's mount. Another mount of the volume may have fewer. */
function isSubPathAsRestricted(whole: MountedLocation, part: MountedLocation): boolean {
  return RESTRICTIVE_MOUNT_OPTIONS.every((option) => !whole.options.includes(option) || part.options.includes(option))
}

/** Only the mount record shows that a volume is modekeep's own if its CSI driver has another name than the default. */
function createOwnVolumeRefusal(group: number | undefined): Refusal {
  return Refusal.of(
    'map-other-driver',
    `is modekeep's own, so "allow" of the node's configuration decides`,
    `set the pod's fsGroup to ${group} and the volume's option ownership instead, and leave it out of the annotation`,
  )
}

/** Opens a source without following links. @throws {Refusal} for another pod's volume */
export function openSourcePath(session: Session, context: PodMountContext, source: string): Handle {
  const { host } = session
  const inPod = splitPodPath(context, source)
  if (inPod !== undefined) return openPathBelowKubelet(host, context.kubeletDir, inPod)
  return useHandleOrClose(
    host.inodes,
    openSourceWithoutLinks(host, source, { what: 'its source', remedy: 'create it' }),
    (handle) => {
      refuseVolumesOfOtherPods(session, context, handle)
      return handle
    },
  )
}

/** Opens a path below kubelet's root directory. Only the path to that directory may contain symbolic links. */
function openPathBelowKubelet({ inodes }: Host, kubeletDir: string, parts: readonly string[]): Handle {
  let here = inodes.openTrusted(kubeletDir)
  for (const part of parts) {
    using _ = deferHandleClose(inodes, here)
    here = openPathComponent(inodes, here, part)
  }
  return here
}

function openPathComponent(inodes: Host['inodes'], parent: Handle, name: string): Handle {
  try {
    return useHandleOrClose(inodes, inodes.openEntry(parent, Buffer.from(name)), (entry) => {
      // statMountPoint does not query a network file system's server.
      if ((inodes.statMountPoint(entry).mode & FILE_TYPE_MASK) !== SYMLINK_TYPE) return entry
      throw Refusal.of(
        'map-source',
        `has a symbolic link in its path (${quoteValue(name)}), which could lead anywhere`,
        'mount a directory',
      )
    })
  } catch (error) {
    if (getErrno(error) !== 'ENOENT' && getErrno(error) !== 'ENOTDIR') throw error
    throw Refusal.of(
      'map-sub-path',
      `has no source any more (${quoteValue(name)} is missing)`,
      'the container is created again by kubelet',
    )
  }
}

/** Finds the name of the volume in the path of a subPath; undefined if the source is a whole volume. */
export function findSubPathVolume({ kubeletDir, pod }: PodIdentity, source: string): string | undefined {
  const directory = `${kubeletDir}/pods/${pod.uid}`
  return source.startsWith(directory) ? parseSubPathVolume(source.slice(directory.length)) : undefined
}

/** Opens each mount of kubelet's for a volume name. A CSI volume is mounted one level deeper. The caller closes them. */
export function* openKubeletVolumeRoots(
  host: Host,
  { kubeletDir, pod }: PodIdentity,
  volume: string,
): Generator<Handle> {
  const volumes = ['pods', pod.uid, 'volumes']
  for (const plugin of host.files.list([kubeletDir, ...volumes].join('/'))) {
    const root = [...volumes, plugin, volume]
    const parts = plugin === CSI_PLUGIN_DIRECTORY ? [...root, 'mount'] : root
    try {
      yield openPathBelowKubelet(host, kubeletDir, parts)
    } catch (error) {
      // Most plugins have no volume of this name.
      if (!(error instanceof Refusal)) throw error
    }
  }
}

/** Opens and stats each source of a container. @throws the error of the first source that fails */
export function checkCloneSources(session: Session, request: ContainerCloneRequest): void {
  const { host } = session
  const context = { ...request, table: snapshotMountTable(host) }
  for (const { source, refusal } of request.clones) {
    if (refusal !== undefined) continue
    const opened = openSourcePath(session, context, source)
    using _ = deferHandleClose(host.inodes, opened)
    host.inodes.stat(opened)
  }
}
