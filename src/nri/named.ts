import { WRITTEN_PLUGINS } from '../mount-table/kubelet-sub-path.ts'
import { quoted } from '../refusal/refusal.ts'
import { HOST_PATH } from '../request/map-rule.ts'
import { type Asked, asPath } from './asked.ts'
import { isOwn, type MountedVolume, type PodVolumes } from './volume.ts'

const LONGEST_LIST = 10

/** Without a name a hostPath cannot be told from what the runtime itself mounts. */
export const isOfNode = ({ kind, isElsewhere }: MountedVolume) => kind === HOST_PATH && !isElsewhere

/** What an annotation asks for a volume. A path names the mount that a container has there, or a hostPath. */
export function groupFor({ all, named }: Asked, volume: MountedVolume): number | undefined {
  const group = named.get(asPath(volume.mount.destination)) ?? named.get(volume.name)
  if (group !== undefined) return group
  return all === undefined || isOfNode(volume) || volume.isKubelets || volume.isOwn ? undefined : all
}

/** What containerd and CRI-O mount into each container, of directories of their own. */
const RUNTIMES_PATHS: readonly string[] = ['/dev/shm', '/etc/hostname', '/etc/hosts', '/etc/resolv.conf']

/** Names that no volume of the pod has: a typing error would leave a pod without its group. None or one sentence. */
export function unknownNames(asked: Asked, mounted: readonly MountedVolume[], volumes: PodVolumes): string[] {
  const { plugins } = volumes
  const here = new Set(mounted.map(({ name }) => name))
  const unknown = [...asked.named.keys()].filter(
    (name) => !name.startsWith('/') && !plugins.has(name) && !here.has(name),
  )
  if (unknown.length === 0) return []
  const names = [...plugins].flatMap(([name, plugin]) =>
    WRITTEN_PLUGINS.includes(plugin) || isOwn(plugin, name, volumes) !== false ? [] : [name],
  )
  const paths = mounted.flatMap(({ mount: { destination }, ...of }) =>
    of.isKubelets || of.isOwn !== false || RUNTIMES_PATHS.includes(destination) ? [] : [destination],
  )
  return [
    `${asked.shown}, but the pod has no volume ${listed(unknown, ', ')} that kubelet knows by this name: ` +
      `write ${listed(names, ' or ')} or the path where the container has it, ${listed(paths, ' or ')} ` +
      "(a claim's volume has the PersistentVolume's name, a hostPath only a path)",
  ]
}

/** Paths at which a container has no volume: they may be another one's of its pod, and so are not refused. */
export function unmatchedPaths(asked: Asked, mounted: readonly MountedVolume[], name: string): string | undefined {
  const here = new Set(mounted.flatMap((volume) => [asPath(volume.mount.destination), volume.name]))
  const unmatched = [...asked.named.keys()].filter((path) => path.startsWith('/') && !here.has(path))
  if (unmatched.length === 0) return undefined
  return (
    `${asked.shown}, and container ${quoted(name)} has no volume at ${listed(unmatched, ', ')}: ` +
    'nothing is mapped there; where no other container of the pod has one there either, correct the path'
  )
}

/** The first ones, and how many more there are. */
export function listed(names: readonly (string | number)[], between: ' or ' | ', '): string {
  if (names.length === 0) return '(there is none)'
  const more = names.length - LONGEST_LIST
  const rest = more > 0 ? [between === ' or ' ? `one of ${more} more` : `${more} more`] : []
  return [...names.slice(0, LONGEST_LIST).map(quoted), ...rest].join(between)
}
