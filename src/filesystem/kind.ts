import type { Handle, Host, Stat } from '../host/host.ts'
import type { KindRules, MountRequest } from '../protocol/request.ts'

/** What a request names, held open, and its real path. */
export interface OpenedSource {
  handle: Handle
  stat: Stat
  path: string
}

/** A kind of volume: what it accepts, where its data is, how its detached mount is made. One file each. */
export interface VolumeKind extends KindRules {
  /** False where the data goes with the mount: then there is nothing to record, and a mount cannot be replaced. */
  readonly persistent: boolean
  /**
   * Opens what the request names; undefined where nothing exists before the mount.
   * @throws {Refusal} naming the source and what to do
   */
  openSource(host: Host, request: MountRequest): OpenedSource | undefined
  openTree(host: Host, request: MountRequest, source: Handle | undefined): Handle
}
