import { isDirectory, type Lock } from '../host/host.ts'
import { type OwnOrder, ownershipOf, wantedOwnership, whyUntouchable } from '../ownership/inode/policy.ts'
import { firstRecord } from '../ownership/inode/record.ts'
import { change } from '../ownership/walk/change.ts'
import { Refusal } from '../refusal/refusal.ts'
import type { Given } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import type { DetachedTree } from '../volume/detached-tree.ts'
import type { MapStep, WalkStep } from './decide.ts'
import { Unmappable } from './map-group.ts'
import { mapVolume } from './map-volume.ts'
import { ownVolume } from './own-volume.ts'

const SET_GID = 0o2000

/** Gives a detached tree its pod's group, and keeps what others must not touch until the tree is attached. */
export class GroupGiver {
  readonly #session: Session
  readonly #tree: DetachedTree
  #locks: Lock[] = []
  given: Given = { by: 'none' }

  constructor(session: Session, tree: DetachedTree) {
    this.#session = session
    this.#tree = tree
  }

  byOption(group: number | undefined): void {
    if (group === undefined) return
    this.given = { by: 'option', why: 'by mount options' }
  }

  async walk(step: WalkStep, why = 'asked for'): Promise<void> {
    this.given = { by: 'walk', group: step.group, why }
    if (step.do === 'own-root') return this.#ownRoot(step)
    const { where, location } = this.#tree
    const { source, pod, directory, restoreOnUnmount, asked } = where
    const volume = step.volume ?? this.#tree.volume
    if (volume === undefined || source === undefined)
      throw new Error('a volume that goes with its mount is walked by its root alone')
    const order = { ...step, volume, source, asked, location, pod, directory, restoreOnUnmount }
    const { lock } = await ownVolume(this.#session, this.#tree.handle, order)
    this.#locks.push(lock)
  }

  /** @throws {Refusal} where groups cannot be mapped and nothing may be done instead */
  async map(step: MapStep): Promise<void> {
    const { clonedFrom, handle, location, where } = this.#tree
    const isAsked = where.ownership === 'idmap'
    try {
      const mapping = { ...step, volume: step.volume ?? this.#tree.volume, location }
      const { from, lock } = await mapVolume(this.#session, handle, clonedFrom, where, mapping)
      if (lock) this.#locks.push(lock)
      const why = `${isAsked ? 'asked for' : 'the file system maps groups'}${this.#ofNewFiles()}`
      this.given = { by: 'idmap', from, why }
    } catch (error) {
      if (!(error instanceof Unmappable) || isAsked) throw error
      await this.#insteadOfMapping(step.otherwise, error)
    }
  }

  /** A mapping changes nothing on disk, so that new files have the volume's group only where directories hand it down. */
  #ofNewFiles(): string {
    const root = this.#session.host.inodes.stat(this.#tree.handle)
    const isPlain = isDirectory(root) && (root.mode & SET_GID) === 0
    return isPlain ? '; its root is not set-gid, so new files get the group of the process that makes them' : ''
  }

  async #insteadOfMapping(otherwise: MapStep['otherwise'], { why }: Unmappable): Promise<void> {
    if (otherwise === 'refuse') {
      throw new Refusal(
        `the group of this volume can only be given by mapping, but ${why}: leave "ownership" out, or mount a directory that can be walked`,
      )
    }
    // Some are found unfit only once they are mapped.
    await this.#tree.makeAnew()
    this.given = { by: 'none', why }
    if (otherwise !== 'nothing') await this.walk(otherwise, why)
  }

  /** A volume that goes with its mount has only its root yet, and nothing to put back. */
  #ownRoot(order: OwnOrder): void {
    const { inodes } = this.#session.host
    const { handle } = this.#tree
    const root = { handle, stat: inodes.stat(handle), at: 0, capability: null, acl: null }
    if (whyUntouchable(root.stat)) return
    const wanted = wantedOwnership(root.stat, order)
    change(inodes, root, firstRecord(root, new Uint8Array(), ownershipOf(root.stat), wanted, null))
  }

  /** The tree is attached, or will never be. */
  release(): void {
    for (const lock of this.#locks) lock.release()
    this.#locks = []
  }
}
