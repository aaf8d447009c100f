import { collectGarbage } from '../../heal/garbage.ts'
import { type GarbageItem, refuseToForget } from '../../heal/volume-garbage.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { listVolumes } from '../../store/places.ts'
import type { Session } from '../../store/session.ts'

/** @property forget a volume to be given up */
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

/** Removes what is not needed any more from the state directory, or says what it would remove. */
export async function gc(session: Session, { isDry, forget }: GcCommand): Promise<GcDocument> {
  if (forget !== undefined) {
    if (!listVolumes(session).includes(forget)) {
      throw new Refusal(`nothing is recorded of volume ${forget}: "modekeep status" names those that are`)
    }
    await refuseToForget(session, forget)
  }
  const items = await collectGarbage(session, { isDry, forget })
  const removed = items.filter(({ action }) => action === 'removed').map(({ kind, name }) => `${kind} ${name}`)
  session.note({ removed })
  return { verb: 'gc', isDry, items }
}
