import { quoted } from '../errors/refusal.ts'
import { ATOMIC_WRITER_PLUGINS } from '../mount-table/kubelet-sub-path.ts'
import { HOST_PATH } from '../request/map-rule.ts'
import { type AnnotationRequest, trimTrailingSlashes } from './annotations.ts'
import { isModekeepVolume, type MountedVolume, type PodVolumes } from './mounted-volume.ts'

const MAX_LISTED_NAMES = 10

/** Returns whether a mount is a hostPath, or a mount that the runtime adds itself: its source does not tell them apart. */
export const isNodePath = ({ kind, isElsewhere }: MountedVolume) => kind === HOST_PATH && !isElsewhere

/** Finds the group that the annotation requests for a volume. A path in it is a container's mount path, or a hostPath. */
export function findGroup(
  { defaultGroup, groupsByName }: AnnotationRequest,
  volume: MountedVolume,
): number | undefined {
  const group = groupsByName.get(trimTrailingSlashes(volume.mount.destination)) ?? groupsByName.get(volume.name)
  if (group !== undefined) return group
  return defaultGroup === undefined || isNodePath(volume) || volume.isKubelets || volume.isOwn
    ? undefined
    : defaultGroup
}

/** containerd and CRI-O mount these into each container, from directories of their own. */
const RUNTIME_PATHS: readonly string[] = ['/dev/shm', '/etc/hostname', '/etc/hosts', '/etc/resolv.conf']

/** Reports names that no volume of the pod has, because a typing error would leave a volume without its group. */
export function findUnknownNames(
  request: AnnotationRequest,
  mounted: readonly MountedVolume[],
  volumes: PodVolumes,
): string[] {
  const { plugins } = volumes
  const mountedNames = new Set(mounted.map(({ name }) => name))
  const unknown = [...request.groupsByName.keys()].filter(
    (name) => !name.startsWith('/') && !plugins.has(name) && !mountedNames.has(name),
  )
  if (unknown.length === 0) return []
  const names = [...plugins].flatMap(([name, plugin]) =>
    ATOMIC_WRITER_PLUGINS.includes(plugin) || isModekeepVolume(plugin, name, volumes) !== false ? [] : [name],
  )
  const paths = mounted.flatMap(({ mount: { destination }, isKubelets, isOwn }) =>
    isKubelets || isOwn !== false || RUNTIME_PATHS.includes(destination) ? [] : [destination],
  )
  return [
    `${request.messagePrefix}, but the pod has no volume ${formatList(unknown, ', ')} that kubelet knows by this name: ` +
      `write ${formatList(names, ' or ')} or the path where the container has it, ${formatList(paths, ' or ')} ` +
      "(a claim's volume has the PersistentVolume's name, a hostPath only a path)",
  ]
}

/**
 * Returns a warning about paths at which the container has no volume. They are not refused, because another container of the
 * pod may have a volume there.
 */
export function formatUnmatchedPaths(
  request: AnnotationRequest,
  mounted: readonly MountedVolume[],
  name: string,
): string | undefined {
  const mountedNames = new Set(
    mounted.flatMap((volume) => [trimTrailingSlashes(volume.mount.destination), volume.name]),
  )
  const unmatched = [...request.groupsByName.keys()].filter((path) => path.startsWith('/') && !mountedNames.has(path))
  if (unmatched.length === 0) return undefined
  return (
    `${request.messagePrefix}, and container ${quoted(name)} has no volume at ${formatList(unmatched, ', ')}: ` +
    'nothing is mapped there; where no other container of the pod has one there either, correct the path'
  )
}

/** Lists the first ten names, and counts the others. */
export function formatList(names: readonly (string | number)[], between: ' or ' | ', '): string {
  if (names.length === 0) return '(there is none)'
  const more = names.length - MAX_LISTED_NAMES
  const rest = more > 0 ? [between === ' or ' ? `one of ${more} more` : `${more} more`] : []
  return [...names.slice(0, MAX_LISTED_NAMES).map(quoted), ...rest].join(between)
}
