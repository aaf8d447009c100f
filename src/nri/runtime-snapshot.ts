import type { RuntimeSnapshot } from '../container-mount/clone-request.ts'
import { isCloneSource } from '../container-mount/clone-staging.ts'
import { type Container, STATE } from './messages.ts'

/** Snapshot of the runtime's container list. */
export function takeSnapshot(containers: readonly Container[]): RuntimeSnapshot {
  const listIds = (isIncluded: (container: Container) => boolean) => containers.filter(isIncluded).map(({ id }) => id)
  return {
    at: Date.now(),
    created: listIds(({ state }) => state === STATE.created),
    started: listIds(({ state }) => state !== STATE.created),
    unmapped: listIds(isUnmapped),
  }
}

/** Returns whether a container has no clone. Without a list of its mounts that is unknown, and the answer is false. */
export function isUnmapped({ id, mounts }: Container): boolean {
  return mounts.length > 0 && !mounts.some(({ source }) => isCloneSource(id, source))
}
