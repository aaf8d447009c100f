/**
 * Killed processes that the kernel does not let end. The owner of each is the namespace or the mount that it worked
 * for.
 */
export class UnkillableProcesses {
  readonly #owners = new Map<number, string>()

  /** Counts a process until it has ended. */
  add(pid: number, owner: string, ended: Promise<unknown>): void {
    this.#owners.set(pid, owner)
    void ended.then(() => this.#owners.delete(pid))
  }

  of(owner: string): number[] {
    return [...this.#owners].flatMap(([pid, its]) => (its === owner ? [pid] : []))
  }
}
