import { setTimeout } from 'node:timers/promises'
import type { ListedSandbox } from './cri.ts'

/** A connection of the plugin, which the runtime has synchronized. */
export interface SynchronizedConnection {
  /** Time before the plugin registered, in milliseconds since 1970. */
  readonly since: number
  /** Ids of the sandboxes that the runtime sent. */
  readonly sandboxes: ReadonlySet<string>
}

/** Returns the sandboxes of each runtime that responds. */
export type ListRuntimeSandboxes = () => Promise<readonly (readonly ListedSandbox[])[]>

/**
 * Checks at an interval whether the runtime calls the plugin, until `stop` aborts. containerd before 2.1 ignores a plugin
 * whose answer to Synchronize was late, and leaves its connection open (NRI before 0.8, acceptPluginConnections).
 * @throws Error if the runtime created a pod and has not called the plugin since
 */
export async function checkPluginRegistration(
  listSandboxes: ListRuntimeSandboxes,
  connection: SynchronizedConnection,
  { intervalMs, stop }: { intervalMs: number; stop: AbortSignal },
): Promise<void> {
  for (;;) {
    await setTimeout(intervalMs, undefined, { signal: stop }).catch(() => {})
    if (stop.aborted) return
    const runtimes = await listSandboxes().catch(() => [])
    // The call about a listed sandbox may still be on its way.
    const skipped = findSkippedSandbox(runtimes, connection, Date.now() - intervalMs)
    if (skipped !== undefined && !stop.aborted) {
      throw new Error(`the runtime created the pod sandbox ${skipped} without calling the plugin`)
    }
  }
}

/**
 * Finds a sandbox that the plugin's runtime created during the connection and did not send. The runtime may have been
 * creating it while it synchronized the plugin. Then the plugin reconnects without need, once.
 * @param before in milliseconds since 1970: later sandboxes are ignored
 * @returns its id
 */
export function findSkippedSandbox(
  runtimes: readonly (readonly ListedSandbox[])[],
  { since, sandboxes }: SynchronizedConnection,
  before: number,
): string | undefined {
  // Another runtime of the node has none of the plugin's sandboxes.
  const own = runtimes.filter((list) => sandboxes.size === 0 || list.some(({ id }) => sandboxes.has(id)))
  const isSkipped = ({ id, createdAtMs }: ListedSandbox) =>
    !sandboxes.has(id) && createdAtMs > since && createdAtMs < before
  return own.flat().find(isSkipped)?.id
}
