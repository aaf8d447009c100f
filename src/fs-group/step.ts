import type { MountRequest } from '../request/request.ts'

type GroupAccess = MountRequest['groupAccess']

/** Shows the group on disk (undefined: the root's) as another. `otherwise` is done where this cannot be. */
export interface MapStep {
  do: 'map-group'
  from: number | undefined
  to: number
  /** Empty where the volume goes with its mount; undefined where only the mount knows. */
  volume: string | undefined
  otherwise: WalkStep | 'nothing' | 'refuse'
}

/** Gives a group by changing inodes: the root alone where the volume goes with its mount. */
export type WalkStep =
  | { do: 'own-root'; group: number; access: GroupAccess }
  | {
      do: 'own-volume'
      group: number
      access: GroupAccess
      volume: string | undefined
      policy: 'OnRootMismatch' | 'Always'
    }
