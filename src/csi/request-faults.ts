import { createFault, type Fault } from '../errors/fault.ts'
import { quoted } from '../errors/refusal.ts'
import { checkFieldSize, checkPathSize, checkSecretsSize, MAX_FIELD_BYTES } from '../path/input-sizes.ts'
import type { CsiMessage } from './messages.ts'

/** Checks the lengths of all fields first, because the request is parsed in the thread that answers all calls. */
export function findRequestSizeFaults(
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

export const findVolumeIdFaults = (volumeId: string) => checkFieldSize('volume_id', volumeId)

// csi.proto: VolumeCapability.AccessMode.Mode
const ACCESS_MODES = [1, 2, 3, 4, 5, 6, 7]

export function findCapabilityFaults(capability: CsiMessage<'VolumeCapability'> | undefined): Fault[] {
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
