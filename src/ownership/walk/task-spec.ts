import { type OwnSpec, OwnTask } from './own-task.ts'
import { RestoreTask } from './restore-task.ts'
import type { Task } from './task.ts'

/** A task as it can be sent to another thread. */
export type TaskSpec = { do: 'restore'; isForced: boolean } | ({ do: 'own' } & OwnSpec)

export function taskOf(spec: TaskSpec): Task {
  return spec.do === 'own' ? new OwnTask(spec) : new RestoreTask(spec.isForced)
}
