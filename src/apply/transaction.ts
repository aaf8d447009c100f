import type { OpenedSource, VolumeKind } from '../filesystem/kind.ts'
import type { Handle, Lock, MountFlags } from '../host/host.ts'
import { change } from '../ownership/change.ts'
import { firstRecord } from '../ownership/held.ts'
import { type OwnOrder, ownershipOf, verdict } from '../ownership/policy.ts'
import type { MapStep, Step, WalkStep } from '../plan/step.ts'
import { Refusal } from '../protocol/refusal.ts'
import type { MountRequest } from '../protocol/request.ts'
import { type Given, NOTHING_GIVEN, removeMountRecord, writeMountRecord } from '../state/mount-record.ts'
import { attachAt, detachAll, replaceAt } from './attach.ts'
import { Unmappable } from './map-group.ts'
import { mapVolume } from './map-volume.ts'
import type { MountPoint } from './mount-point.ts'
import { setTarget } from './mount-target.ts'
import { ownVolume } from './own-volume.ts'
import type { Session } from './session.ts'

/** Runs a mount plan's steps. When one fails, the inverses of those before it run, latest first; the first cause is thrown. */
export class Transaction {
  readonly #session: Session
  readonly #request: MountRequest
  readonly #kind: VolumeKind
  readonly #point: MountPoint
  readonly #source: OpenedSource | undefined
  #tree: Handle | undefined
  #flags: MountFlags = { set: 0, clear: 0 }
  #given: Given = NOTHING_GIVEN
  #locks: Lock[] = []

  constructor(
    session: Session,
    request: MountRequest,
    kind: VolumeKind,
    point: MountPoint,
    source: OpenedSource | undefined,
  ) {
    this.#session = session
    this.#request = request
    this.#kind = kind
    this.#point = point
    this.#source = source
  }

  /** @returns how the group was given */
  async run(steps: readonly Step[]): Promise<Given> {
    const done: Step[] = []
    try {
      for (const step of steps) {
        await this.#apply(step)
        done.push(step)
      }
      return this.#given
    } catch (error) {
      for (const step of done.reverse()) this.#undo(step)
      throw error
    } finally {
      this.#closeTree()
      for (const lock of this.#locks) lock.release()
    }
  }

  async #apply(step: Step): Promise<void> {
    const { host, config } = this.#session
    switch (step.do) {
      case 'record':
        return writeMountRecord(host, config.stateDir, step.record)
      case 'make-tree':
        return this.#makeTree()
      case 'set-flags':
        this.#flags = step
        return host.mounts.setFlags(this.#held(), step)
      case 'own-root':
      case 'own-volume':
        return this.#walk(step, 'asked for')
      case 'map-group':
        return this.#map(step)
      case 'record-ready': {
        const mountId = String(host.inodes.stat(this.#held()).mountId)
        const whole = { ...step.record, ...this.#given, phase: 'ready' as const, mountId, since: Date.now() }
        return writeMountRecord(host, config.stateDir, whole)
      }
      case 'detach-all':
        return detachAll(host, this.#point)
      case 'set-target':
        return setTarget(host, this.#point, step.type)
      case 'attach':
        return attachAt(host, this.#point, this.#held())
      case 'replace':
        return replaceAt(host, this.#point, this.#held(), this.#where().source)
      default:
        throw new Error(`step ${step.do} is not part of a mount`)
    }
  }

  /** An inverse that fails is told, and the others still run: the first cause is what the pod's author needs. */
  #undo(step: Step): void {
    if (!('undo' in step)) return
    const { host, config } = this.#session
    try {
      if (step.undo === undefined) return
      if (step.undo === 'close-tree') this.#closeTree()
      else if (step.undo === 'directory-target') setTarget(host, this.#point, 'directory')
      else if (step.undo === 'detach') detachAll(host, this.#point)
      else if (step.undo.restore) writeMountRecord(host, config.stateDir, step.undo.restore)
      else removeMountRecord(host, config.stateDir, this.#point.path)
    } catch (error) {
      this.#session.warn(`could not undo "${step.do}": ${(error as Error).message}`)
    }
  }

  async #walk(step: WalkStep, why: string): Promise<void> {
    this.#given = { ownership: 'walk', why, walkGroup: step.group, mappedFrom: -1 }
    if (step.do === 'own-root') return this.#ownRoot(step)
    const { source, pod, directory, restoreOnUnmount } = this.#where()
    const order = { ...step, source, pod, directory, restoreOnUnmount }
    this.#locks.push(await ownVolume(this.#session, this.#held(), order))
  }

  async #map(step: MapStep): Promise<void> {
    const why = this.#request.ownership === 'auto' ? 'the file system maps groups' : 'asked for'
    try {
      const { from, lock } = await mapVolume(this.#session, this.#held(), this.#source?.handle, this.#where(), step)
      if (lock) this.#locks.push(lock)
      this.#given = { ownership: 'idmap', why, walkGroup: -1, mappedFrom: from }
    } catch (error) {
      if (!(error instanceof Unmappable) || this.#request.ownership === 'idmap') throw error
      await this.#insteadOfMapping(step.otherwise, error)
    }
  }

  async #insteadOfMapping(otherwise: MapStep['otherwise'], { why }: Unmappable): Promise<void> {
    if (otherwise === 'refuse') {
      throw new Refusal(
        `what "subPath" names is no directory, so its group can only be mapped, but ${why}: leave "ownership" out, or mount the directory it is in`,
      )
    }
    // Some are found unfit only once they are mapped.
    this.#closeTree()
    this.#makeTree()
    this.#session.host.mounts.setFlags(this.#held(), this.#flags)
    this.#given = { ...NOTHING_GIVEN, why }
    if (otherwise !== 'nothing') await this.#walk(otherwise, why)
  }

  #makeTree(): void {
    this.#tree = this.#kind.openTree(this.#session.host, this.#request, this.#source?.handle)
  }

  /** A volume that goes with its mount has only its root yet, and nothing to put back. */
  #ownRoot(order: OwnOrder): void {
    const { inodes } = this.#session.host
    const held = { handle: this.#held(), stat: inodes.stat(this.#held()), at: 0, capability: null, acl: null }
    const decided = verdict(held.stat, order)
    if (!('want' in decided)) return
    change(inodes, held, firstRecord(held, new Uint8Array(), ownershipOf(held.stat), decided.want, null))
  }

  /** The request with the real place of what its subPath names: what others compare theirs with. */
  #where(): MountRequest {
    return { ...this.#request, source: this.#source?.path ?? this.#request.source }
  }

  #held(): Handle {
    if (this.#tree === undefined) throw new Error('the plan has no tree yet')
    return this.#tree
  }

  #closeTree(): void {
    if (this.#tree !== undefined) this.#session.host.inodes.close(this.#tree)
    this.#tree = undefined
  }
}
