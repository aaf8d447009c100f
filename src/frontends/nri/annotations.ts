import { HOST_PATH_KIND } from '../../config/map-rule.ts'
import { parseGroupId } from '../../config/option-faults.ts'
import { type CloneRequest, GROUP_OPTIONAL_ANNOTATION } from '../../container/clone-request.ts'
import { attributeFaultToAnnotation, createAnnotationFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { ATOMIC_WRITER_PLUGINS } from '../../kernel/mount-table/kubelet-volume.ts'
import type { PodProcessGids } from './cri.ts'
import { isModekeepVolume, type MountedVolume, type PodVolumes } from './pod-volumes.ts'

const GROUP_ANNOTATION = 'modekeep/group'

/** The value `root` requests the set-gid bit on the roots of the pod's volumes. */
const SET_GID_ANNOTATION = 'modekeep/set-gid'

/** The value `grant` requests a walk that gives the group access to the pod's volumes on disk. */
const GROUP_ACCESS_ANNOTATION = 'modekeep/group-access'

/** Refusals give this reason for a clone of modekeep's own volume, in place of an annotation. */
export const USER_NAMESPACE_REASON = 'the pod has a user namespace of its own'

/** Parsed value of the annotation `modekeep/group`. */
export interface ParsedGroupAnnotation {
  /** Group of every volume of the pod that the annotation does not name. */
  readonly defaultGroup: number | undefined
  /** Keyed by volume name, or by the path in the container without trailing slashes. */
  readonly groupsByName: ReadonlyMap<string, number>
  /** Every message about the annotation begins with it: `annotation modekeep/group is "2000"`. */
  readonly messagePrefix: string
}

const GROUP_ANNOTATION_EXAMPLES = '"2000" for all volumes of the pod, or "data=2000,logs=3000"'

// Limits of one annotation, which may have 256 KiB: more entries than pods have volumes, and PATH_MAX.
const MAX_ANNOTATION_ENTRIES = 200
const MAX_ANNOTATION_NAME_LENGTH = 4096

type PodAnnotations = Readonly<Record<string, string>>

/** Normalizes a path in a container, so that `/data/` in an annotation matches a mount at `/data`. */
function trimTrailingSlashes(path: string): string {
  let end = path.length
  // A loop, because a regular expression backtracks quadratically on many slashes.
  while (end > 1 && path[end - 1] === '/') end--
  return path.slice(0, end)
}

const formatGroupAnnotation = (text: string) => `annotation ${GROUP_ANNOTATION} is ${quoteValue(text)}`

const findAnnotation = (annotations: PodAnnotations, key: string) =>
  Object.hasOwn(annotations, key) ? annotations[key] : undefined

export function hasGroupAnnotation(annotations: PodAnnotations): boolean {
  return Object.hasOwn(annotations, GROUP_ANNOTATION)
}

/** Returns whether the pod's containers may start without the group. @throws {Refusal} unless the value is "true" or "false" */
export function isGroupOptional(annotations: PodAnnotations): boolean {
  const text = findAnnotation(annotations, GROUP_OPTIONAL_ANNOTATION) ?? 'false'
  if (text === 'true' || text === 'false') return text === 'true'
  throw new Refusal(
    createAnnotationFault(
      'annotation-invalid',
      `annotation ${GROUP_OPTIONAL_ANNOTATION} is ${quoteValue(text)}`,
      `write "true" or "false"`,
    ),
  )
}

/** Returns whether the roots of the pod's volumes get the set-gid bit. @throws {Refusal} for a value other than "root" */
export const hasSetGidAnnotation = (annotations: PodAnnotations): boolean =>
  hasAnnotationWithValue(annotations, SET_GID_ANNOTATION, 'root')

/** Returns whether a walk gives the group access to the pod's volumes. @throws {Refusal} for a value other than "grant" */
export const hasGrantAnnotation = (annotations: PodAnnotations): boolean =>
  hasAnnotationWithValue(annotations, GROUP_ACCESS_ANNOTATION, 'grant')

function hasAnnotationWithValue(annotations: PodAnnotations, key: string, value: string): boolean {
  const text = findAnnotation(annotations, key)
  if (text === undefined || text === value) return text !== undefined
  throw new Refusal(
    createAnnotationFault(
      'annotation-invalid',
      `annotation ${key} is ${quoteValue(text)}`,
      `write "${value}", or leave it out`,
    ),
  )
}

/** @returns undefined if the pod has no such annotation @throws {Refusal} with one fault for each invalid entry */
export function parseGroupAnnotation(annotations: PodAnnotations): ParsedGroupAnnotation | undefined {
  const text = findAnnotation(annotations, GROUP_ANNOTATION)
  if (text === undefined) return undefined
  const entries = text.split(',', MAX_ANNOTATION_ENTRIES + 1)
  const messagePrefix = formatGroupAnnotation(text)
  const faults: Fault[] = []
  const addFault = (reason: string, remedy: string) =>
    void faults.push(createAnnotationFault('annotation-invalid', `${messagePrefix}: ${reason}`, remedy))
  let defaultGroup: number | undefined
  const groupsByName = new Map<string, number>()
  if (entries.length > MAX_ANNOTATION_ENTRIES)
    addFault(`it has more than ${MAX_ANNOTATION_ENTRIES} entries`, `write ${GROUP_ANNOTATION_EXAMPLES}`)
  for (const entry of entries.slice(0, MAX_ANNOTATION_ENTRIES)) {
    const at = entry.lastIndexOf('=')
    const key = entry.slice(0, Math.max(0, at)).trim()
    const name = key.startsWith('/') ? trimTrailingSlashes(key) : key
    const group = parseGroupId(entry.slice(at + 1).trim())
    if (typeof group !== 'number' || (at >= 0 && name === '')) {
      addFault(`${quoteValue(entry)} names no group from 0 to 4294967294`, `write ${GROUP_ANNOTATION_EXAMPLES}`)
    } else if (name.length > MAX_ANNOTATION_NAME_LENGTH) {
      addFault(
        `${quoteValue(name)} is no name of a volume, and a path has at most ${MAX_ANNOTATION_NAME_LENGTH} characters`,
        `write ${GROUP_ANNOTATION_EXAMPLES}`,
      )
    } else if (at < 0) {
      if (defaultGroup !== undefined)
        addFault(`it has two groups for all volumes, ${defaultGroup} and ${group}`, 'keep one')
      defaultGroup = group
    } else {
      if (groupsByName.has(name)) addFault(`it names volume ${quoteValue(name)} twice`, 'keep one')
      groupsByName.set(name, group)
    }
  }
  if (faults.length > 0) throw new Refusal(faults)
  return { defaultGroup, groupsByName, messagePrefix }
}

/** Prefixes each fault with the annotation, or with the user namespace, unless the fault begins with it already. */
export function prefixFaultsWithAnnotation(annotations: PodAnnotations, { faults, cause }: Refusal): Refusal {
  const text = findAnnotation(annotations, GROUP_ANNOTATION)
  const messagePrefix = text === undefined ? USER_NAMESPACE_REASON : formatGroupAnnotation(text)
  return new Refusal(
    faults.map((fault) => attributeFaultToAnnotation(fault, messagePrefix)),
    { cause },
  )
}

const MAX_LISTED_NAMES = 10

/** Returns whether a mount is a hostPath, or a mount that the runtime adds itself: its source does not tell them apart. */
export const isHostPathOrRuntimeMount = ({ kind, isElsewhere }: MountedVolume) =>
  kind === HOST_PATH_KIND && !isElsewhere

/** Finds the group that the annotation requests for a volume. A path in it is a container's mount path, or a hostPath. */
export function findRequestedGroup(
  { defaultGroup, groupsByName }: ParsedGroupAnnotation,
  volume: MountedVolume,
): number | undefined {
  const group = groupsByName.get(trimTrailingSlashes(volume.mount.destination)) ?? groupsByName.get(volume.name)
  if (group !== undefined) return group
  return defaultGroup === undefined || isHostPathOrRuntimeMount(volume) || volume.isKubelets || volume.isOwn
    ? undefined
    : defaultGroup
}

/** containerd and CRI-O mount these into each container, from directories of their own. */
const RUNTIME_MOUNT_PATHS: readonly string[] = ['/dev/shm', '/etc/hostname', '/etc/hosts', '/etc/resolv.conf']

/** Reports names that no volume of the pod has, because a typing error would leave a volume without its group. */
export function findUnknownVolumeFaults(
  request: ParsedGroupAnnotation,
  mounted: readonly MountedVolume[],
  volumes: PodVolumes,
): Fault[] {
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
    isKubelets || isOwn !== false || RUNTIME_MOUNT_PATHS.includes(destination) ? [] : [destination],
  )
  return [
    createAnnotationFault(
      'annotation-volume',
      `${request.messagePrefix}, but the pod has no volume ${formatTruncatedList(unknown, ', ')} that kubelet knows by this name`,
      `write ${formatTruncatedList(names, ' or ')} or the path where the container has it, ${formatTruncatedList(paths, ' or ')} ` +
        "(a claim's volume has the PersistentVolume's name, a hostPath only a path)",
    ),
  ]
}

/**
 * Returns a warning about paths at which the container has no volume. They are not refused, because another container of the
 * pod may have a volume there.
 */
export function formatUnmatchedPathsWarning(
  request: ParsedGroupAnnotation,
  mounted: readonly MountedVolume[],
  name: string,
): string | undefined {
  const mountedNames = new Set(
    mounted.flatMap((volume) => [trimTrailingSlashes(volume.mount.destination), volume.name]),
  )
  const unmatched = [...request.groupsByName.keys()].filter((path) => path.startsWith('/') && !mountedNames.has(path))
  if (unmatched.length === 0) return undefined
  return (
    `${request.messagePrefix}, and container ${quoteValue(name)} has no volume at ${formatTruncatedList(unmatched, ', ')}: ` +
    'nothing is mapped there; where no other container of the pod has one there either, correct the path'
  )
}

/** Limit for one container. More clones could not be made before its deadline, and no pod needs them. */
export const MAX_MAPPED_MOUNTS = 200

export function createTooManyMountsFault(
  annotation: ParsedGroupAnnotation | undefined,
  count: number,
  name: string,
): Fault {
  return createAnnotationFault(
    'map-too-many',
    `${annotation?.messagePrefix ?? USER_NAMESPACE_REASON}, but ${count} volumeMounts of container ${quoteValue(name)} would have to be mapped, and more than ${MAX_MAPPED_MOUNTS} of one container are not`,
    'mount fewer, or name those that need it in the annotation',
  )
}

/** @param processGroups undefined if no runtime reported them */
export function findGroupMembershipFaults(
  annotation: ParsedGroupAnnotation,
  clones: readonly CloneRequest[],
  name: string,
  processGroups?: PodProcessGids,
): Fault[] {
  if (processGroups === undefined) return []
  const { certain, possible } = processGroups
  const groups = new Set(clones.flatMap(({ group }) => group ?? []))
  const missing = [...groups].filter((group) => !certain.includes(group) && !possible.includes(group))
  if (missing.length === 0) return []
  return [
    createAnnotationFault(
      'map-membership',
      `${annotation.messagePrefix}, but the processes of container ${quoteValue(name)} are not in group ${formatTruncatedList(missing, ', ')}`,
      `write it in supplementalGroups of the pod's securityContext (or in fsGroup, where the volume's CSIDriver has fsGroupPolicy None)`,
    ),
  ]
}

/** Lists the first ten names, and counts the others. */
function formatTruncatedList(names: readonly (string | number)[], between: ' or ' | ', '): string {
  if (names.length === 0) return '(there is none)'
  const more = names.length - MAX_LISTED_NAMES
  const rest = more > 0 ? [between === ' or ' ? `one of ${more} more` : `${more} more`] : []
  return [...names.slice(0, MAX_LISTED_NAMES).map(quoteValue), ...rest].join(between)
}
