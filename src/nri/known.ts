import type { Known } from '../container-mount/order.ts'
import { isCloneOf } from '../container-mount/stand.ts'
import { type Container, STATE } from './messages.ts'

/** What a runtime has told of all its containers, now. */
export function knownOf(containers: readonly Container[]): Known {
  const idsOf = (isWanted: (container: Container) => boolean) => containers.filter(isWanted).map(({ id }) => id)
  return {
    at: Date.now(),
    created: idsOf(({ state }) => state === STATE.created),
    started: idsOf(({ state }) => state !== STATE.created),
    unmapped: idsOf(isUnmapped),
  }
}

/** It has no clone. A runtime that tells no mounts at all does not tell this. */
export function isUnmapped({ id, mounts }: Container): boolean {
  return mounts.length > 0 && !mounts.some(({ source }) => isCloneOf(id, source))
}
