import { type Ownership, same } from '../inode/policy.ts'

/** What an inode was before it was first recorded, and what its latest change made of it. */
export interface States {
  before: Ownership
  after: Ownership
}

/** Users can make as many as they like; most volumes have a handful. */
const MOST = 4096
export const NO_STATES = 0

/** Numbers for the states of many inodes: each that is different is kept once. */
export class StateTable {
  readonly #all: States[] = []
  readonly #ids = new Map<string, number>()
  #latest = NO_STATES

  /** @returns NO_STATES where there are too many different ones */
  idOf(before: Ownership, after: Ownership): number {
    const latest = this.get(this.#latest)
    // Most inodes are like the one before.
    if (latest && same(latest.before, before) && same(latest.after, after)) return this.#latest
    const key = `${before.gid} ${before.mode} ${after.gid} ${after.mode}`
    const id = this.#ids.get(key) ?? this.#add(key, { before, after })
    this.#latest = id
    return id
  }

  #add(key: string, states: States): number {
    if (this.#all.length === MOST) return NO_STATES
    const id = this.#all.push(states)
    this.#ids.set(key, id)
    return id
  }

  get(id: number): States | undefined {
    return this.#all[id - 1]
  }
}
