import { restoreRootBits } from '../fs-group/root-bit.ts'
import { messageOf, Refusal, thrownFirst } from '../refusal/refusal.ts'
import { type PluginRecord, pluginRecord } from '../store/plugin-record.ts'
import type { Session } from '../store/session.ts'
import { attachClones } from './attach.ts'
import { checkSources } from './check-sources.ts'
import type { AttachStep, CloneOutcome, ContainerCloneRequest, OwnMountsRequest, RuntimeSnapshot } from './order.ts'
import { readOwnRestrictions } from './own-restrictions.ts'
import { reconcile, release } from './release.ts'
import { noteWithout } from './without.ts'

/** What a worker does for the one who answers the runtime; a line of JSON each. */
export type ContainerJob =
  | { do: 'attach'; order: ContainerCloneRequest }
  /** It has started, or it is gone: was removed, or could not be created after all. */
  | { do: 'release'; container: string; as: 'started' | 'gone' }
  | { do: 'reconcile'; known?: RuntimeSnapshot }
  /** It does without what it asked for: of that nothing was made. */
  | { do: 'without'; order: ContainerCloneRequest; why: string }
  /** Opens the volumes of a container as `attach` does: it succeeds once they respond. Makes nothing. */
  | { do: 'check'; order: ContainerCloneRequest }
  /** Writes whether the runtime has the plugin registered. */
  | { do: 'registration'; record: PluginRecord }
  /** Reads the restrictions of modekeep's own mounts, which the runtime is to give to the container. */
  | { do: 'restrictions'; request: OwnMountsRequest }

/** What came of it. `failure`: nothing was made; the container is not to be created, with this as the reason. */
export type ContainerResult =
  | {
      failure?: undefined
      mounts?: readonly CloneOutcome[]
      /** Mount options, for each mount of the request; none where the mount is not modekeep's. */
      restrictions?: readonly (readonly string[])[]
    }
  | { failure: string; isUnexpected?: boolean }

/** Does a job. Never throws. */
export async function workOnContainer(
  session: Session,
  job: ContainerJob,
  report: (step: AttachStep) => void = () => {},
): Promise<ContainerResult> {
  try {
    switch (job.do) {
      case 'attach':
        return await attachClones(session, job.order, report)
      case 'release':
        await release(session, job.container, job.as)
        return {}
      case 'without':
        await noteWithout(session, job.order, job.why)
        return {}
      case 'check':
        checkSources(session, job.order)
        return {}
      case 'registration':
        pluginRecord.write(session, job.record)
        return {}
      case 'restrictions':
        return { restrictions: readOwnRestrictions(session, job.request) }
      case 'reconcile':
        session.note({ tookAway: reconcile(session, job.known) })
        await restoreRootBits(session)
        return {}
    }
  } catch (error) {
    const first = thrownFirst(error)
    if (first instanceof Refusal) return { failure: first.message }
    return { failure: `modekeep failed: ${messageOf(error)}; see its log on the node`, isUnexpected: true }
  }
}
