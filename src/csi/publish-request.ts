import { stat } from 'node:fs/promises'
import { createFault, type Fault, prefixFault } from '../errors/fault.ts'
import { quoted, Refusal } from '../errors/refusal.ts'
import { parseMountDirectory } from '../flexvolume/protocol.ts'
import { parseGroup, parsePodUid } from '../request/option-faults.ts'
import { AUTHOR_KEYS } from '../request/request.ts'
import type { Lifecycle } from '../request/rule.ts'
import type { CsiMessage } from './messages.ts'
import { findCapabilityFaults, findRequestSizeFaults, findVolumeIdFaults } from './request-faults.ts'
import { createNotPublished, type Publication } from './worker-tasks.ts'

/** Parsed NodePublishVolume request. */
interface PublishRequest extends Publication {
  /** The pod's namespace. */
  namespace: string
}

// csi.proto: VolumeCapability.AccessMode.Mode
const READ_ONLY_MODES = [2, 3]
const SINGLE_NODE_SINGLE_WRITER = 6

/** Kubelet overwrites attributes with this prefix if the CSIDriver object has podInfoOnMount (csi_mounter.go). */
const POD_PREFIX = 'csi.storage.k8s.io/'
const EPHEMERAL_KEY = `${POD_PREFIX}ephemeral`
const POD_KEYS: Readonly<Record<string, string>> = {
  [`${POD_PREFIX}pod.name`]: 'kubernetes.io/pod.name',
  [`${POD_PREFIX}pod.namespace`]: 'kubernetes.io/pod.namespace',
  [`${POD_PREFIX}pod.uid`]: 'kubernetes.io/pod.uid',
}
const ACCOUNT_KEY = `${POD_PREFIX}serviceAccount.name`

/** Returns whether modekeep reads the key of volume_context. */
const isReadKey = (key: string) => AUTHOR_KEYS.includes(key) || Object.hasOwn(POD_KEYS, key) || key === ACCOUNT_KEY
/** Attribute that a provisioner adds to its volumes. */
const PROVISIONER_KEY = 'storage.kubernetes.io/csiProvisionerIdentity'
const LIFECYCLES: ReadonlyMap<string | undefined, Lifecycle> = new Map([
  ['true', 'inline'],
  ['false', 'persistent'],
])

/**
 * Parses a NodePublishVolume request. Pure. The values of options are checked later, when the options are parsed.
 * @param isGroupPassed whether the calling kubelet passes the pod's fsGroup, if the pod has one
 * @throws {Refusal} with every fault of the request
 */
export function parsePublishRequest(
  request: CsiMessage<'NodePublishVolumeRequest'>,
  isGroupPassed = true,
): PublishRequest {
  const { volumeId, volumeCapability: capability, volumeContext: context } = request
  const tooLong = findRequestSizeFaults(request, isReadKey)
  if (tooLong.length > 0) throw new Refusal(tooLong)
  const faults = findMissingFields({ volume_id: volumeId, target_path: request.targetPath })
  const directory = parseDirectory('target_path', request.targetPath, faults)
  faults.push(...findCapabilityFaults(capability), ...findKeyFaults(context))
  const pod = parsePod(context, directory, faults)
  const { fsType = '', mountFlags = [], volumeMountGroup = '' } = capability?.mount ?? {}
  if (volumeMountGroup !== '' && typeof parseGroup(volumeMountGroup) !== 'number') {
    faults.push(
      createFault(
        'csi-request',
        `volume_mount_group is ${quoted(volumeMountGroup)}`,
        undefined,
        `kubelet gives a group's number there`,
      ),
    )
  }
  const { ownership = 'none' } = context
  // The pod would otherwise run without access to its volume.
  if (!isGroupPassed && volumeMountGroup === '' && ownership !== 'none') {
    faults.push(
      createFault(
        'csi-fs-group',
        `ownership is ${quoted(ownership)}, but this kubelet is older than 1.23 and hands no fsGroup over to CSI drivers`,
        'leave ownership out, or use the FlexVolume driver',
      ),
    )
  }
  if (faults.length > 0) throw new Refusal(faults)
  const isReadOnly = request.readonly || READ_ONLY_MODES.includes(capability?.accessMode?.mode ?? 0)
  const own = AUTHOR_KEYS.filter((key) => Object.hasOwn(context, key)).map((key) => [key, context[key] ?? ''] as const)
  const mountOptions = [context.mountOptions ?? '', ...mountFlags].filter((option) => option !== '')
  const options = new Map<string, string>([
    ...own,
    ...pod.options,
    ['kubernetes.io/readwrite', isReadOnly ? 'ro' : 'rw'],
  ])
  if (mountOptions.length > 0) options.set('mountOptions', mountOptions.join(','))
  if (fsType !== '') options.set('kubernetes.io/fsType', fsType)
  if (volumeMountGroup !== '') options.set('kubernetes.io/mounterArgs.FsGroup', volumeMountGroup)
  return {
    volumeId,
    directory,
    options: sortKeys([...options]),
    secrets: sortKeys(Object.entries(request.secrets)),
    lifecycle: pod.lifecycle,
    namespace: pod.namespace,
    ...(capability?.accessMode?.mode === SINGLE_NODE_SINGLE_WRITER && { isSingleWriter: true }),
  }
}

/** @throws {Refusal} if a target is not below kubelet's pods directory */
export async function refuseOutsidePods(kubeletDirectory: string, directory: string): Promise<void> {
  if (await isBelowPods(kubeletDirectory, directory)) return
  throw Refusal.of(
    'csi-target',
    `target_path ${quoted(directory)} is not below ${kubeletDirectory}/pods`,
    `give kubelet's --root-dir as --kubelet-dir`,
  )
}

/** Parses the volume id and target path of a call. @throws {Refusal} with every fault */
export function parseTarget(volumeId: string, path: string): string {
  const faults = [...findVolumeIdFaults(volumeId), ...findMissingFields({ volume_id: volumeId, target_path: path })]
  const directory = parseDirectory('target_path', path, faults)
  if (faults.length > 0) throw new Refusal(faults)
  return directory
}

/**
 * Like `parseTarget`, for a stats call. A path where nothing can be published has no volume (csi-sanity uses `some/path`).
 * @throws {Refusal} with every missing field; {CallFailure} NOT_FOUND for an invalid path
 */
export function parseStatsTarget(volumeId: string, path: string): string {
  const faults = [...findVolumeIdFaults(volumeId), ...findMissingFields({ volume_id: volumeId, volume_path: path })]
  if (faults.length > 0) throw new Refusal(faults)
  const directory = parseDirectory('volume_path', path, faults)
  if (faults.length > 0) throw createNotPublished(path)
  return directory
}

function findMissingFields(fields: Readonly<Record<string, string>>): Fault[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    value === '' ? [createFault('csi-request', `${name} is missing`, 'name it')] : [],
  )
}

function parseDirectory(field: string, path: string, faults: Fault[]): string {
  if (path === '') return ''
  try {
    return parseMountDirectory(path)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    faults.push(...error.faults.map((fault) => prefixFault(fault, `${field}: `)))
    return ''
  }
}

/** Refuses unknown attributes. The author may write any key here, even those that only kubelet writes for a FlexVolume. */
function findKeyFaults(context: Readonly<Record<string, string>>): Fault[] {
  const foreign = Object.keys(context).filter(
    (key) => !AUTHOR_KEYS.includes(key) && !key.startsWith(POD_PREFIX) && key !== PROVISIONER_KEY,
  )
  if (foreign.length === 0) return []
  return [
    createFault(
      'csi-attribute',
      `volumeAttributes have unknown ${quoted(foreign)}`,
      `the attributes are ${AUTHOR_KEYS.join(', ')}`,
    ),
  ]
}

/** Parses the pod's attributes that kubelet adds. A missing one is a fault. */
function parsePod(context: Readonly<Record<string, string>>, directory: string, faults: Fault[]) {
  const lifecycle = LIFECYCLES.get(context[EPHEMERAL_KEY])
  const names = Object.keys(POD_KEYS).filter((key) => !context[key])
  if (names.length > 0 || lifecycle === undefined) {
    faults.push(
      createFault(
        'csi-pod-info',
        'kubelet does not say which pod the volume is for',
        'the CSIDriver object must say podInfoOnMount: true',
      ),
    )
  }
  const uid = context[`${POD_PREFIX}pod.uid`]
  const expected = parsePodUid(directory)
  if (names.length === 0 && expected !== undefined && uid !== expected) {
    faults.push(
      createFault(
        'csi-pod-info',
        `volumeAttributes name pod ${quoted(uid)}, but target_path is that of pod ${expected}`,
        'the CSIDriver object must say podInfoOnMount: true',
      ),
    )
  }
  const account = context[ACCOUNT_KEY]
  const options = Object.entries(POD_KEYS).map(([key, name]) => [name, context[key] ?? ''] as const)
  return {
    lifecycle: lifecycle ?? 'inline',
    namespace: context[`${POD_PREFIX}pod.namespace`] ?? '',
    options: account ? [...options, ['kubernetes.io/serviceAccount.name', account] as const] : options,
  }
}

/** Go's maps have a random order. */
function sortKeys(entries: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(entries.toSorted(([first], [second]) => (first < second ? -1 : 1)))
}

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
