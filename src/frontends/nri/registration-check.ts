import { setTimeout } from 'node:timers/promises'
import type { ListedSandbox } from './cri.ts'

/** A connection of the plugin, which the runtime has synchronized. */
export interface SynchronizedConnection {
  /** Time before the plugin registered, in milliseconds of performance.now(): the node's clock may be set meanwhile. */
  readonly startedAt: number
  /** Ids of the sandboxes that the runtime sent. */
  readonly sandboxes: ReadonlySet<string>
}

/** Returns the sandboxes of each runtime that responds. */
export type ListRuntimeSandboxes = () => Promise<readonly (readonly ListedSandbox[])[]>

/**
 * Checks at an interval whether the runtime calls the plugin, until `stop` aborts. A runtime with NRI before 0.8, such
 * as containerd 1.7, ignores a plugin whose answer to Synchronize was late, and leaves its connection open.
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
    // The call about a newer sandbox may still be on its way.
    const before = Date.now() - intervalMs
    const since = Date.now() - (performance.now() - connection.startedAt)
    const skipped = findSkippedSandbox(await listSandboxes().catch(() => []), connection.sandboxes, { since, before })
    if (skipped !== undefined && !stop.aborted) {
      throw new Error(`the runtime created the pod sandbox ${skipped} without calling the plugin`)
    }
  }
}

/**
 * Finds a sandbox that the plugin's runtime created during the connection and did not send. The runtime may have been
 * creating it while it synchronized the plugin. Then the plugin reconnects without need, once.
 * @param sent ids of the sandboxes that the runtime sent
 * @param period in milliseconds since 1970: other sandboxes are ignored
 * @returns its id
 */
export function findSkippedSandbox(
  runtimes: readonly (readonly ListedSandbox[])[],
  sent: ReadonlySet<string>,
  { since, before }: { since: number; before: number },
): string | undefined {
  // Another runtime of the node has none of the sandboxes that were sent. An only runtime may have removed them.
  const own = runtimes.filter((list) => runtimes.length === 1 || sent.size === 0 || list.some(({ id }) => sent.has(id)))
  const isSkipped = ({ id, isReady, createdAtMs }: ListedSandbox) =>
    isReady && !sent.has(id) && createdAtMs > since && createdAtMs < before
  return own.flat().find(isSkipped)?.id
}
