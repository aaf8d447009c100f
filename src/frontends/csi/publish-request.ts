import { parseGroup, parsePodUid } from '../../config/option-faults.ts'
import { AUTHOR_KEYS } from '../../config/request.ts'
import type { Lifecycle } from '../../config/rule.ts'
import { createFault, type Fault } from '../../errors/fault.ts'
import { quoted, Refusal } from '../../errors/refusal.ts'
import { checkFieldSize, checkPathSize, checkSecretsSize, MAX_FIELD_BYTES } from '../../kernel/path/input-sizes.ts'
import type { CsiMessage } from './messages.ts'
import { findMissingFields, findVolumeIdFaults, parsePathField } from './target-path.ts'
import type { Publication } from './worker-tasks.ts'

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
  const directory = parsePathField('target_path', request.targetPath, faults)
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

/** Checks the lengths of all fields first, because the request is parsed in the thread that answers all calls. */
function findRequestSizeFaults(
  { volumeId, volumeCapability, volumeContext, secrets }: CsiMessage<'NodePublishVolumeRequest'>,
  isRead: (key: string) => boolean,
): Fault[] {
  const { fsType = '', mountFlags = [], volumeMountGroup = '' } = volumeCapability?.mount ?? {}
  const fields = Object.entries(volumeContext).filter(([key]) => isRead(key))
  const flagBytes = mountFlags.reduce((sum, flag) => sum + flag.length + 1, 0)
  const secretBytes = Object.values(secrets).reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  return [
    ...findVolumeIdFaults(volumeId),
    ...checkFieldSize('fs_type', fsType),
    ...checkFieldSize('volume_mount_group', volumeMountGroup),
    ...(flagBytes > MAX_FIELD_BYTES ? [createFlagsFault(flagBytes)] : []),
    ...fields.flatMap(([key, value]) =>
      (key === 'subPath' ? checkPathSize : checkFieldSize)(`volumeAttributes "${key}"`, value),
    ),
    ...Object.keys(secrets).flatMap((key) => checkFieldSize(`the name of Secret key ${quoted(key)}`, key)),
    ...checkSecretsSize(secretBytes),
  ]
}

function createFlagsFault(size: number): Fault {
  return createFault(
    'input-too-large',
    `mount_flags have ${size} bytes`,
    `at most ${MAX_FIELD_BYTES} are accepted, shorten them`,
  )
}

// csi.proto: VolumeCapability.AccessMode.Mode
const ACCESS_MODES = [1, 2, 3, 4, 5, 6, 7]

function findCapabilityFaults(capability: CsiMessage<'VolumeCapability'> | undefined): Fault[] {
  if (capability === undefined) return [createFault('csi-request', 'volume_capability is missing', 'name it')]
  const { block, mount, accessMode } = capability
  const faults: Fault[] = []
  if (block !== undefined) {
    faults.push(
      createFault(
        'csi-request',
        'volume_capability asks for a block device',
        'leave out volumeMode: Block',
        'modekeep mounts',
      ),
    )
  } else if (mount === undefined)
    faults.push(createFault('csi-request', 'volume_capability has no access type', 'name mount'))
  if (accessMode === undefined || !ACCESS_MODES.includes(accessMode.mode)) {
    faults.push(
      createFault(
        'csi-request',
        `volume_capability has access_mode ${quoted(accessMode?.mode ?? 0)}`,
        `use one of ${ACCESS_MODES.join(', ')}`,
      ),
    )
  }
  return faults
}
