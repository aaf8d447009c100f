import { quoted } from '../errors/refusal.ts'
import { InvalidArgument } from '../grpc/server.ts'
import type { DevicePluginMessage } from './messages.ts'

/** Name of the resource in pods. */
export const RESOURCE = 'modekeep/fuse'

const MAX_NAMED = 5

/**
 * IDs of the offered devices, which are all alike. Checking a request takes time linear in its size, and one with more IDs
 * than there are devices is refused by its length alone.
 */
export class DeviceIds {
  readonly #ids: ReadonlySet<string>

  constructor(count: number) {
    this.#ids = new Set(Array.from({ length: count }, (_, index) => `fuse-${index}`))
  }

  get all(): Iterable<string> {
    return this.#ids
  }

  /** @throws {InvalidArgument} if the request has more containers than there are devices */
  assertContainers(containers: readonly unknown[]): void {
    const count = this.#ids.size
    if (containers.length <= count) return
    throw new InvalidArgument(
      `the request has ${containers.length} containers, and ${RESOURCE} has ${count} devices: send smaller requests`,
    )
  }

  /** @throws {InvalidArgument} for devices that are not offered */
  assertOffered(requested: readonly string[]): void {
    const count = this.#ids.size
    if (requested.length > count) {
      throw new InvalidArgument(
        `the request names ${requested.length} devices of ${RESOURCE}, which has ${count}: name each device once`,
      )
    }
    const unknown: string[] = []
    for (const id of requested) {
      if (this.#ids.has(id)) continue
      unknown.push(quoted(id))
      if (unknown.length === MAX_NAMED) break
    }
    if (unknown.length > 0) throw new InvalidArgument(`${RESOURCE} has no device ${unknown.join(', ')}`)
  }

  /** Chooses the required devices, then the first available ones. */
  prefer(request: DevicePluginMessage<'ContainerPreferredAllocationRequest'>): { deviceIDs: string[] } {
    const { availableDeviceIDs, mustIncludeDeviceIDs, allocationSize: size } = request
    this.assertOffered(mustIncludeDeviceIDs)
    this.assertOffered(availableDeviceIDs)
    const included = new Set(mustIncludeDeviceIDs)
    const deviceIDs = [...included.union(new Set(availableDeviceIDs))]
    if (size < included.size || size > deviceIDs.length) {
      throw new InvalidArgument(`cannot choose ${size} of ${deviceIDs.length} devices, ${included.size} of them fixed`)
    }
    return { deviceIDs: deviceIDs.slice(0, size) }
  }
}
