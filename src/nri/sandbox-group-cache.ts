import type { ProcessGroups } from './process-groups.ts'

/** The runtime sends its event just before it can report the sandbox's status. */
const PREFETCH_DELAY_MS = 10
/** No node runs so many sandboxes. */
const MAX_SANDBOXES = 10_000

/** Caches the groups of a sandbox, which never change. Prefetched groups do not delay the sandbox's containers. */
export class SandboxGroupCache {
  readonly #readGroups: (sandbox: string) => Promise<ProcessGroups | undefined>
  readonly #groups = new Map<string, Promise<ProcessGroups | undefined>>()

  /** @param readGroups must not reject */
  constructor(readGroups: (sandbox: string) => Promise<ProcessGroups | undefined>) {
    this.#readGroups = readGroups
  }

  async read(sandbox: string): Promise<ProcessGroups | undefined> {
    // The prefetch may have come before the runtime could answer.
    return (await this.#groups.get(sandbox)) ?? this.#request(sandbox)
  }

  /** Requests the groups of a new sandbox, before its first container is created. */
  prefetch(sandbox: string): void {
    setTimeout(() => void this.#request(sandbox), PREFETCH_DELAY_MS).unref()
  }

  forget(sandbox: string): void {
    this.#groups.delete(sandbox)
  }

  #request(sandbox: string): Promise<ProcessGroups | undefined> {
    if (this.#groups.size >= MAX_SANDBOXES) this.#groups.clear()
    const groups = this.#readGroups(sandbox)
    this.#groups.set(sandbox, groups)
    return groups
  }
}
