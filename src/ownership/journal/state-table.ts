import { isSameOwnership, type Ownership } from '../inode/policy.ts'

/** State of an inode before it was first recorded, and the target of its latest change. */
export interface RecordedStates {
  before: Ownership
  after: Ownership
}

/** Users can make any number of different states; most volumes have a handful. */
const MAX_STATES = 4096
export const NO_STATE_ID = 0

/** Assigns numbers to the states of inodes. Equal states are stored once. */
export class StateTable {
  readonly #all: RecordedStates[] = []
  readonly #ids = new Map<string, number>()
  #latest = NO_STATE_ID

  /** @returns NO_STATE_ID if there are too many different states */
  assignId(before: Ownership, after: Ownership): number {
    const latest = this.get(this.#latest)
    // Most inodes have the same states as the previous one.
    if (latest && isSameOwnership(latest.before, before) && isSameOwnership(latest.after, after)) return this.#latest
    const key = `${before.gid} ${before.mode} ${after.gid} ${after.mode}`
    const id = this.#ids.get(key) ?? this.#add(key, { before, after })
    this.#latest = id
    return id
  }

  #add(key: string, states: RecordedStates): number {
    if (this.#all.length === MAX_STATES) return NO_STATE_ID
    const id = this.#all.push(states)
    this.#ids.set(key, id)
    return id
  }

  get(id: number): RecordedStates | undefined {
    return this.#all[id - 1]
  }
}
