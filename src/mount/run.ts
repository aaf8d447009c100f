import { GroupGiver } from '../fs-group/group-giver.ts'
import type { MountPoint } from '../mount-table/mount-point.ts'
import { forgetMount } from '../store/forget.ts'
import { type Given, type MountRecord, writeMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { endHanging, endReplaced } from '../volume/daemon.ts'
import type { DetachedTree } from '../volume/detached-tree.ts'
import { putGuard } from '../volume/guard.ts'
import { attachAt, detachAll } from './attach.ts'
import { setTarget } from './mount-target.ts'
import { replaceAt } from './replace.ts'
import { SavedMount } from './saved-mount.ts'
import type { Step, Undoable } from './step.ts'

/**
 * Runs a mount plan. When a step fails, the inverses of those before it run, latest first.
 * @returns how the group was given
 * @throws the first cause
 */
export function runPlan(
  session: Session,
  point: MountPoint,
  tree: DetachedTree,
  steps: readonly Step[],
): Promise<Given> {
  return new Run(session, point, tree).all(steps)
}

/** The one interpreter of mount plans: what each step and each inverse does. */
class Run {
  readonly #session: Session
  readonly #point: MountPoint
  readonly #tree: DetachedTree
  readonly #giver: GroupGiver
  #preparing: MountRecord | undefined
  #recorded: MountRecord | undefined
  #saved: SavedMount | undefined

  constructor(session: Session, point: MountPoint, tree: DetachedTree) {
    this.#session = session
    this.#point = point
    this.#tree = tree
    this.#giver = new GroupGiver(session, tree)
  }

  async all(steps: readonly Step[]): Promise<Given> {
    const done: Step[] = []
    try {
      for (const step of steps) {
        await this.#apply(step)
        done.push(step)
      }
      return this.#giver.given
    } catch (error) {
      for (const step of done.reverse()) if ('undo' in step) this.#undo(step)
      throw error
    } finally {
      this.#tree.close()
      this.#saved?.close()
      this.#giver.release()
    }
  }

  async #apply(step: Step): Promise<void> {
    const { host } = this.#session
    switch (step.do) {
      case 'record':
        this.#preparing = { ...step.record, hadSecrets: this.#tree.hadSecrets }
        return this.#write(this.#preparing)
      case 'make-tree':
        await this.#tree.make(step.group)
        this.#giver.byOption(step.group)
        return this.#recordVolume()
      case 'set-flags':
        return this.#tree.setFlags(step)
      case 'own-root':
      case 'own-volume':
        return this.#giver.walk(step)
      case 'map-group':
        return this.#giver.map(step)
      case 'record-ready':
        this.#recorded = this.#ready(step.record)
        return this.#write(this.#recorded)
      case 'detach-all':
        await endHanging(this.#session, this.#point, this.#recorded)
        return this.#detachSaved(step)
      case 'set-target':
        return setTarget(host, this.#point, step.type)
      case 'guard':
        return putGuard(host, this.#point)
      case 'attach':
        return attachAt(host, this.#point, this.#tree.handle)
      case 'end-daemons':
        return endReplaced(this.#session, this.#point.path)
      case 'replace':
        await endHanging(this.#session, this.#point, this.#recorded)
        return replaceAt(host, this.#point, this.#tree.handle, this.#tree.where.source)
      default:
        step satisfies never
    }
  }

  /** It may fail when the mount is gone already: what is undone is this step too. */
  #detachSaved(step: Undoable): void {
    this.#saved = SavedMount.of(this.#session.host, this.#point)
    try {
      detachAll(this.#session.host, this.#point)
    } catch (error) {
      this.#undo(step)
      throw error
    }
  }

  #ready(record: MountRecord): MountRecord {
    // A daemon that serves it may hang from the beginning.
    const { host } = this.#session
    const { mountId, device } = host.inodes.statMountPoint(this.#tree.handle)
    const { volume, staging, hadSecrets } = this.#tree
    return {
      ...record,
      given: this.#giver.given,
      volume,
      staging,
      hadSecrets,
      mounted: { mountId: String(mountId), device, namespace: host.mountNamespace(), since: Date.now() },
    }
  }

  /** Should this call crash from now on, the next one must find what it may have done to the volume. */
  #recordVolume(): void {
    const { volume } = this.#tree
    if (!this.#preparing || this.#preparing.volume === volume) return
    this.#preparing = { ...this.#preparing, volume }
    this.#write(this.#preparing)
  }

  #write(record: MountRecord): void {
    writeMountRecord(this.#session.host, this.#session.config.stateDir, record)
  }

  /** The record goes last: by it the next call finds what could not be removed. */
  #forget(): void {
    this.#giver.release()
    forgetMount(this.#session, this.#point.path, this.#preparing?.volume)
  }

  /** An inverse that fails is told, and the others still run: the first cause is what the pod's author needs. */
  #undo(step: Undoable): void {
    try {
      this.#invert(step.undo)
    } catch (error) {
      this.#session.warn(`could not undo "${step.do}": ${(error as Error).message}`)
    }
  }

  #invert(undo: Undoable['undo']): void {
    const { host } = this.#session
    if (undo === 'close-tree') this.#tree.close()
    else if (undo === 'directory-target') setTarget(host, this.#point, 'directory')
    else if (undo === 'detach') detachAll(host, this.#point)
    else if (undo === 'old-mount') this.#saved?.putBack()
    else if (undo.restore) this.#write(undo.restore)
    else this.#forget()
  }
}
