import { reconcileContainers } from '../../container-mount/release.ts'
import { Refusal } from '../../errors/refusal.ts'
import { restoreRootBits } from '../../fs-group/root-bit.ts'
import { collectGarbage } from '../../heal/garbage.ts'
import { type GarbageItem, refuseToForget } from '../../heal/volume-garbage.ts'
import { listContainers } from '../../store/container-record.ts'
import { listVolumes } from '../../store/record-directories.ts'
import type { Session } from '../../store/session.ts'
import { resolveVolumeName } from './target.ts'

/** @property forget a volume whose record is removed, or the beginning of its name */
export interface GcCommand {
  verb: 'gc'
  isDry: boolean
  forget: string | undefined
}

export interface GcDocument {
  verb: 'gc'
  isDry: boolean
  items: GarbageItem[]
}

/** Removes unneeded records from the state directory, or reports what it would remove. */
export async function gc(session: Session, { isDry, forget: word }: GcCommand): Promise<GcDocument> {
  const forget = word === undefined ? undefined : resolveVolumeName(session, word, listVolumes(session))
  if (word !== undefined && forget === undefined) {
    throw new Refusal(`nothing is recorded of volume ${word}: "modekeep status" names those that are`)
  }
  if (forget !== undefined) await refuseToForget(session, forget)
  const items = [...(await collectGarbage(session, { isDry, forget })), ...collectContainerGarbage(session, isDry)]
  if (!isDry) await restoreRootBits(session)
  const removed = items.filter(({ action }) => action === 'removed').map(({ kind, name }) => `${kind} ${name}`)
  session.note({ removed })
  return { verb: 'gc', isDry, items }
}

/** Removes clones and records of containers that are gone. The runtime's plugin does the same whenever it connects. */
function collectContainerGarbage(session: Session, isDry: boolean): GarbageItem[] {
  const reason = 'its pod is gone, or it has long had time to start'
  const removed = reconcileContainers(session, undefined, isDry)
  const kept = listContainers(session).flatMap(({ container: name, problem }): GarbageItem[] =>
    problem === undefined || removed.includes(name)
      ? []
      : [{ kind: 'container', name, action: 'kept', reason: problem.message }],
  )
  return [...removed.map((name): GarbageItem => ({ kind: 'container', name, action: 'removed', reason })), ...kept]
}
