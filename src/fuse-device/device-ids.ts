import { InvalidArgument } from '../grpc/server.ts'
import { quoted } from '../refusal/refusal.ts'
import type { Content } from './messages.ts'

/** As a pod's resources name it. */
export const RESOURCE = 'modekeep/fuse'

const MAX_NAMED = 5

/**
 * The devices that are offered. All are alike. Work on a request is linear in its size, and a request that names more than
 * there is is refused by its length alone.
 */
export class DeviceIds {
  readonly #ids: ReadonlySet<string>

  constructor(count: number) {
    this.#ids = new Set(Array.from({ length: count }, (_, index) => `fuse-${index}`))
  }

  get all(): Iterable<string> {
    return this.#ids
  }

  /** @throws {InvalidArgument} for a request of more containers than there are devices */
  assertContainers(containers: readonly unknown[]): void {
    const most = this.#ids.size
    if (containers.length <= most) return
    throw new InvalidArgument(
      `the request has ${containers.length} containers, and ${RESOURCE} has ${most} devices: send smaller requests`,
    )
  }

  /** @throws {InvalidArgument} for devices that are not offered */
  assertOffered(requested: readonly string[]): void {
    const most = this.#ids.size
    if (requested.length > most) {
      throw new InvalidArgument(
        `the request names ${requested.length} devices of ${RESOURCE}, which has ${most}: name each device once`,
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

  /** Those that must be, then the first that are free. */
  prefer(request: Content<'ContainerPreferredAllocationRequest'>): { deviceIDs: string[] } {
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
