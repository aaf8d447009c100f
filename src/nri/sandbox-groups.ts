import type { ToldGroups } from './pod-groups.ts'

/** The runtime tells of a sandbox just before it answers others about it, ms. */
const KNOWN_AFTER_MS = 10
/** More than a node runs. */
const MOST_REMEMBERED = 10_000

/** Remembers what a runtime tells of a sandbox, which does not change: containers do not wait for what was asked ahead. */
export class SandboxGroups {
  readonly #ask: (sandbox: string) => Promise<ToldGroups | undefined>
  readonly #told = new Map<string, Promise<ToldGroups | undefined>>()

  /** @param ask must not reject */
  constructor(ask: (sandbox: string) => Promise<ToldGroups | undefined>) {
    this.#ask = ask
  }

  async of(sandbox: string): Promise<ToldGroups | undefined> {
    // Ahead may have been too early.
    return (await this.#told.get(sandbox)) ?? this.#asked(sandbox)
  }

  /** Of a sandbox whose containers are to come. */
  askAhead(sandbox: string): void {
    setTimeout(() => void this.#asked(sandbox), KNOWN_AFTER_MS).unref()
  }

  forget(sandbox: string): void {
    this.#told.delete(sandbox)
  }

  #asked(sandbox: string): Promise<ToldGroups | undefined> {
    if (this.#told.size >= MOST_REMEMBERED) this.#told.clear()
    const told = this.#ask(sandbox)
    this.#told.set(sandbox, told)
    return told
  }
}
