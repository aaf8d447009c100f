import type { Fault } from '../errors/fault.ts'
import { findFirstError, formatError, Refusal } from '../errors/refusal.ts'
import { restoreRootBits } from '../fs-group/root-bit.ts'
import { type PluginRecord, pluginRecord } from '../store/process-records.ts'
import type { Session } from '../store/session.ts'
import { attachClones } from './attach-clones.ts'
import type {
  AttachStep,
  CloneOutcome,
  ContainerCloneRequest,
  OwnMountsRequest,
  RuntimeSnapshot,
} from './clone-request.ts'
import { checkCloneSources } from './clone-source.ts'
import { reconcileContainers, recordWithout, releaseClones } from './container-state.ts'
import { readOwnRestrictions } from './own-volume.ts'

/** A task of a worker process, sent by the thread that answers the runtime as a line of JSON. */
export type ContainerTask =
  | { do: 'attach'; order: ContainerCloneRequest }
  /** The container has started, or it was removed or never created ('gone'). */
  | { do: 'release'; container: string; as: 'started' | 'gone' }
  | { do: 'reconcile'; known?: RuntimeSnapshot }
  /** Records that the container runs without its clones. */
  | { do: 'without'; order: ContainerCloneRequest; why: string }
  /** Opens a container's volumes as `attach` does, without making a clone. It ends once they respond. */
  | { do: 'check'; order: ContainerCloneRequest }
  /** Records whether the runtime has the plugin registered. */
  | { do: 'registration'; record: PluginRecord }
  /** Reads the restrictions of modekeep's own mounts, which the runtime applies to the container's. */
  | { do: 'restrictions'; request: OwnMountsRequest }

/** Result of a task. With `failure` as the reason nothing was made, and the container must not be created. */
export type ContainerTaskResult =
  | {
      failure?: undefined
      mounts?: readonly CloneOutcome[]
      /** Mount options of each mount of the request. Mounts of other drivers have none. */
      restrictions?: readonly (readonly string[])[]
    }
  | { failure: string; faults?: readonly Fault[]; isUnexpected?: boolean }

/** Runs a task. Never throws. */
export async function runContainerTask(
  session: Session,
  task: ContainerTask,
  report: (step: AttachStep) => void = () => {},
): Promise<ContainerTaskResult> {
  try {
    switch (task.do) {
      case 'attach':
        return await attachClones(session, task.order, report)
      case 'release':
        await releaseClones(session, task.container, task.as)
        return {}
      case 'without':
        await recordWithout(session, task.order, task.why)
        return {}
      case 'check':
        checkCloneSources(session, task.order)
        return {}
      case 'registration':
        pluginRecord.write(session, task.record)
        return {}
      case 'restrictions':
        return { restrictions: readOwnRestrictions(session, task.request) }
      case 'reconcile':
        session.note({ tookAway: reconcileContainers(session, task.known) })
        await restoreRootBits(session)
        return {}
    }
  } catch (error) {
    const first = findFirstError(error)
    if (first instanceof Refusal) return { failure: first.message, faults: first.faults }
    return { failure: `modekeep failed: ${formatError(error)}; see its log on the node`, isUnexpected: true }
  }
}
