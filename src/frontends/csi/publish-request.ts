import { parseGroupId, parsePodUid } from '../../config/option-faults.ts'
import { AUTHOR_OPTION_KEYS } from '../../config/request.ts'
import type { CsiLifecycle } from '../../config/rule.ts'
import { createFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { checkFieldSize, checkPathSize, checkSecretsSize, MAX_FIELD_BYTES } from '../../kernel/path/input-sizes.ts'
import type { CsiMessage } from './messages.ts'
import { findMissingFieldFaults, findVolumeIdFaults, parseRequestPathField } from './target-path.ts'
import type { VolumePublication } from './worker-tasks.ts'

/** Parsed NodePublishVolume request. */
interface PublishVolumeRequest extends VolumePublication {
  /** The pod's namespace. */
  namespace: string
}

// csi.proto: VolumeCapability.AccessMode.Mode
const READ_ONLY_ACCESS_MODES = [2, 3]
const SINGLE_NODE_SINGLE_WRITER_MODE = 6

/** Kubelet overwrites attributes with this prefix if the CSIDriver object has podInfoOnMount (csi_mounter.go). */
const POD_INFO_KEY_PREFIX = 'csi.storage.k8s.io/'
const EPHEMERAL_ATTRIBUTE_KEY = `${POD_INFO_KEY_PREFIX}ephemeral`
const POD_INFO_OPTION_KEYS: Readonly<Record<string, string>> = {
  [`${POD_INFO_KEY_PREFIX}pod.name`]: 'kubernetes.io/pod.name',
  [`${POD_INFO_KEY_PREFIX}pod.namespace`]: 'kubernetes.io/pod.namespace',
  [`${POD_INFO_KEY_PREFIX}pod.uid`]: 'kubernetes.io/pod.uid',
}
const SERVICE_ACCOUNT_ATTRIBUTE_KEY = `${POD_INFO_KEY_PREFIX}serviceAccount.name`

/** Returns whether modekeep reads the key of volume_context. */
const isSupportedAttributeKey = (key: string) =>
  AUTHOR_OPTION_KEYS.includes(key) || Object.hasOwn(POD_INFO_OPTION_KEYS, key) || key === SERVICE_ACCOUNT_ATTRIBUTE_KEY
/** Attribute that a provisioner adds to its volumes. */
const PROVISIONER_ATTRIBUTE_KEY = 'storage.kubernetes.io/csiProvisionerIdentity'
const VOLUME_LIFECYCLES: ReadonlyMap<string | undefined, CsiLifecycle> = new Map([
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
): PublishVolumeRequest {
  const { volumeId, volumeCapability: capability, volumeContext: context } = request
  const tooLong = findPublishRequestSizeFaults(request, isSupportedAttributeKey)
  if (tooLong.length > 0) throw new Refusal(tooLong)
  const faults = findMissingFieldFaults({ volume_id: volumeId, target_path: request.targetPath })
  const directory = parseRequestPathField('target_path', request.targetPath, faults)
  faults.push(...findVolumeCapabilityFaults(capability), ...findUnknownAttributeFaults(context))
  const pod = parsePodInfo(context, directory, faults)
  const { fsType = '', mountFlags = [], volumeMountGroup = '' } = capability?.mount ?? {}
  if (volumeMountGroup !== '' && typeof parseGroupId(volumeMountGroup) !== 'number') {
    faults.push(
      createFault(
        'csi-request',
        `volume_mount_group is ${quoteValue(volumeMountGroup)}`,
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
        `ownership is ${quoteValue(ownership)}, but this kubelet is older than 1.23 and hands no fsGroup over to CSI drivers`,
        'leave ownership out, or use the FlexVolume driver',
      ),
    )
  }
  if (faults.length > 0) throw new Refusal(faults)
  const isReadOnly = request.readonly || READ_ONLY_ACCESS_MODES.includes(capability?.accessMode?.mode ?? 0)
  const own = AUTHOR_OPTION_KEYS.filter((key) => Object.hasOwn(context, key)).map(
    (key) => [key, context[key] ?? ''] as const,
  )
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
    options: sortEntriesByKey([...options]),
    secrets: sortEntriesByKey(Object.entries(request.secrets)),
    lifecycle: pod.lifecycle,
    namespace: pod.namespace,
    ...(capability?.accessMode?.mode === SINGLE_NODE_SINGLE_WRITER_MODE && { isSingleWriter: true }),
  }
}

/** Refuses unknown attributes. The author may write any key here, even those that only kubelet writes for a FlexVolume. */
function findUnknownAttributeFaults(context: Readonly<Record<string, string>>): Fault[] {
  const foreign = Object.keys(context).filter(
    (key) =>
      !AUTHOR_OPTION_KEYS.includes(key) && !key.startsWith(POD_INFO_KEY_PREFIX) && key !== PROVISIONER_ATTRIBUTE_KEY,
  )
  if (foreign.length === 0) return []
  return [
    createFault(
      'csi-attribute',
      `volumeAttributes have unknown ${quoteValue(foreign)}`,
      `the attributes are ${AUTHOR_OPTION_KEYS.join(', ')}`,
    ),
  ]
}

/** Parses the pod's attributes that kubelet adds. A missing one is a fault. */
function parsePodInfo(context: Readonly<Record<string, string>>, directory: string, faults: Fault[]) {
  const lifecycle = VOLUME_LIFECYCLES.get(context[EPHEMERAL_ATTRIBUTE_KEY])
  const names = Object.keys(POD_INFO_OPTION_KEYS).filter((key) => !context[key])
  if (names.length > 0 || lifecycle === undefined) {
    faults.push(
      createFault(
        'csi-pod-info',
        'kubelet does not say which pod the volume is for',
        'the CSIDriver object must say podInfoOnMount: true',
      ),
    )
  }
  const uid = context[`${POD_INFO_KEY_PREFIX}pod.uid`]
  const expected = parsePodUid(directory)
  if (names.length === 0 && expected !== undefined && uid !== expected) {
    faults.push(
      createFault(
        'csi-pod-info',
        `volumeAttributes name pod ${quoteValue(uid)}, but target_path is that of pod ${expected}`,
        'the CSIDriver object must say podInfoOnMount: true',
      ),
    )
  }
  const account = context[SERVICE_ACCOUNT_ATTRIBUTE_KEY]
  const options = Object.entries(POD_INFO_OPTION_KEYS).map(([key, name]) => [name, context[key] ?? ''] as const)
  return {
    lifecycle: lifecycle ?? 'inline',
    namespace: context[`${POD_INFO_KEY_PREFIX}pod.namespace`] ?? '',
    options: account ? [...options, ['kubernetes.io/serviceAccount.name', account] as const] : options,
  }
}

/** Go's maps have a random order. */
function sortEntriesByKey(entries: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(entries.toSorted(([first], [second]) => (first < second ? -1 : 1)))
}

/** Checks the lengths of all fields first, because the request is parsed in the thread that answers all calls. */
function findPublishRequestSizeFaults(
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
    ...(flagBytes > MAX_FIELD_BYTES ? [createMountFlagsFault(flagBytes)] : []),
    ...fields.flatMap(([key, value]) =>
      (key === 'subPath' ? checkPathSize : checkFieldSize)(`volumeAttributes "${key}"`, value),
    ),
    ...Object.keys(secrets).flatMap((key) => checkFieldSize(`the name of Secret key ${quoteValue(key)}`, key)),
    ...checkSecretsSize(secretBytes),
  ]
}

function createMountFlagsFault(size: number): Fault {
  return createFault(
    'input-too-large',
    `mount_flags have ${size} bytes`,
    `at most ${MAX_FIELD_BYTES} are accepted, shorten them`,
  )
}

// csi.proto: VolumeCapability.AccessMode.Mode
const SUPPORTED_ACCESS_MODES = [1, 2, 3, 4, 5, 6, 7]

function findVolumeCapabilityFaults(capability: CsiMessage<'VolumeCapability'> | undefined): Fault[] {
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
  if (accessMode === undefined || !SUPPORTED_ACCESS_MODES.includes(accessMode.mode)) {
    faults.push(
      createFault(
        'csi-request',
        `volume_capability has access_mode ${quoteValue(accessMode?.mode ?? 0)}`,
        `use one of ${SUPPORTED_ACCESS_MODES.join(', ')}`,
      ),
    )
  }
  return faults
}
