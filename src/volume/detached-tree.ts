import type { Handle, MountFlags } from '../host/host.ts'
import type { TreeLocation } from '../mount-table/tree-location.ts'
import { locationOfTree } from '../mount-table/tree-location.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { sourceText } from '../request/source.ts'
import type { Session } from '../store/session.ts'
import { textIdentity, volumeIdentity } from '../store/volume-record.ts'
import type { OpenedSource, VolumeKind } from './kind/kind.ts'
import { mountContextOf } from './mount-context.ts'

/** A request with the real path of what it names, as text; undefined: it names nothing. */
export interface Where extends Omit<MountRequest, 'source'> {
  source: string | undefined
  /** The path that the pod named, where that is a part of a source. */
  asked: string | undefined
}

/** The mount that a call is making: no path leads to it until it is attached. */
export class DetachedTree {
  readonly #session: Session
  readonly #kind: VolumeKind
  readonly #request: MountRequest
  readonly #source: OpenedSource | undefined
  #tree: Handle | undefined
  #group: number | undefined
  #flags: MountFlags = { set: 0, clear: 0 }
  #volume: string | undefined
  /** The staging directory of the daemon that serves it. */
  staging: string | undefined

  constructor(session: Session, kind: VolumeKind, request: MountRequest, source: OpenedSource | undefined) {
    this.#session = session
    this.#kind = kind
    this.#request = request
    this.#source = source
  }

  /** @param group given by the kind's own mount options */
  async make(group: number | undefined): Promise<void> {
    this.#group = group
    const context = mountContextOf(this.#session, this.#request, this.#source, group)
    if (this.#kind.hasDaemon) this.staging = context.staging
    this.#tree = await this.#kind.openTree(context)
  }

  get hadSecrets(): boolean {
    return this.#kind.usesSecrets === true && (this.#session.secrets?.size ?? 0) > 0
  }

  setFlags(flags: MountFlags): void {
    this.#flags = flags
    this.#session.host.mounts.setFlags(this.handle, flags)
  }

  /** Another one like it: what was tried with the first cannot be undone. */
  async makeAnew(): Promise<void> {
    this.close()
    await this.make(this.#group)
    this.setFlags(this.#flags)
  }

  get handle(): Handle {
    if (this.#tree === undefined) throw new Error('the plan has no tree yet')
    return this.#tree
  }

  /** What it is a clone of, if it is one. */
  get clonedFrom(): Handle | undefined {
    return this.#kind.root === 'source' ? this.#source?.handle : undefined
  }

  /** Where it lies, if the source's path does not tell. */
  get location(): TreeLocation | undefined {
    if (this.#kind.root !== 'file system' || !this.#kind.persistent) return undefined
    return locationOfTree(this.#session.host, this.handle)
  }

  /** The volume's identity; undefined where the volume goes with its mount. */
  get volume(): string | undefined {
    this.#volume ??= this.#identify()
    return this.#volume
  }

  #identify(): string | undefined {
    if (!this.#kind.persistent) return undefined
    if (this.#kind.root === 'text') return textIdentity(this.#request)
    const { host } = this.#session
    return volumeIdentity(host, this.handle, host.inodes.stat(this.handle))
  }

  /** The request with the real path of what its subPath names: what others compare theirs with. */
  get where(): Where {
    const { subPath } = this.#request
    const source = sourceText(this.#request.source)
    const asked = subPath === undefined ? undefined : `${source}/${subPath}`
    return { ...this.#request, source: this.#source?.path ?? source, asked }
  }

  close(): void {
    if (this.#tree !== undefined) this.#session.host.inodes.close(this.#tree)
    this.#tree = undefined
  }
}
