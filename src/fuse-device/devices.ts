import { open } from 'node:fs/promises'
import { InvalidArgument } from '../grpc/method.ts'
import type { Message } from '../grpc/wire.ts'
import { messageOf } from '../refusal/refusal.ts'
import type {
  AllocateRequest,
  Allocation,
  DeviceList,
  PreferredAllocationRequest,
  PreferredAllocationResponse,
} from './messages.ts'

/** As a pod's resources name it. */
export const RESOURCE = 'modekeep/fuse'

/** Where a container finds the device, and where FUSE libraries look. */
const CONTAINER_PATH = '/dev/fuse'

/** Virtual devices: each is the node's one device, so their count only bounds how many containers may have it. */
export class Devices {
  readonly #ids: ReadonlySet<string>
  readonly #hostPath: string

  /** @param hostPath the device, as the container runtime finds it */
  constructor(count: number, hostPath: string) {
    this.#ids = new Set(Array.from({ length: count }, (_, index) => `fuse-${index}`))
    this.#hostPath = hostPath
  }

  list(isHealthy: boolean): DeviceList {
    const health = isHealthy ? 'Healthy' : 'Unhealthy'
    return { devices: Array.from(this.#ids, (ID) => ({ ID, health })) }
  }

  /** @throws InvalidArgument for ids that are not the plugin's */
  allocate({ container_requests }: Message<typeof AllocateRequest>): Allocation {
    const device = { container_path: CONTAINER_PATH, host_path: this.#hostPath, permissions: 'rwm' }
    return {
      container_responses: container_requests.map(({ devicesIDs }) => {
        this.check(devicesIDs)
        return { devices: devicesIDs.length > 0 ? [device] : [] }
      }),
    }
  }

  /** All devices are alike: those that must be, then the first that are free. @throws InvalidArgument */
  prefer(request: Message<typeof PreferredAllocationRequest>): Message<typeof PreferredAllocationResponse> {
    return {
      container_responses: request.container_requests.map((wanted) => {
        const { available_deviceIDs: available, must_include_deviceIDs: included, allocation_size: size } = wanted
        this.check([...available, ...included])
        const deviceIDs = [...new Set([...included, ...available])]
        if (size < new Set(included).size || size > deviceIDs.length) {
          throw new InvalidArgument(
            `cannot choose ${size} of ${deviceIDs.length} devices, ${included.length} of them fixed`,
          )
        }
        return { deviceIDs: deviceIDs.slice(0, size) }
      }),
    }
  }

  /** @throws InvalidArgument that names the unknown ids */
  check(ids: readonly string[]): void {
    const unknown = ids.filter((id) => !this.#ids.has(id)).map((id) => JSON.stringify(id).slice(0, 80))
    if (unknown.length > 0) throw new InvalidArgument(`${RESOURCE} has no device ${unknown.slice(0, 5).join(', ')}`)
  }
}

/** Only an open tells: the node may be there without its kernel module, or be denied by the device cgroup. @returns why not */
export async function whyUnhealthy(device: string): Promise<string | undefined> {
  try {
    const handle = await open(device, 'r+')
    try {
      return (await handle.stat()).isCharacterDevice() ? undefined : `${device} is not a character device`
    } finally {
      await handle.close()
    }
  } catch (error) {
    return messageOf(error)
  }
}
