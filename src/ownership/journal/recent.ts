type Entries<K, V> = Map<K, { value: V; weight: number }>

/**
 * What was put in last: at least up to half a weight, at most up to the whole. A pod can have any number of different
 * values. In two halves: to take the oldest from a Map again and again costs a look at all that were taken before.
 */
export class Recent<K, V> {
  readonly #half: number
  #older: Entries<K, V> = new Map()
  #newer: Entries<K, V> = new Map()
  /** Of the newer half. */
  #weight = 0

  constructor(most: number) {
    this.#half = most / 2
  }

  get size(): number {
    return this.#older.size + this.#newer.size
  }

  get(key: K): V | undefined {
    return (this.#newer.get(key) ?? this.#older.get(key))?.value
  }

  put(key: K, value: V, weight: number): void {
    this.delete(key)
    if (weight > this.#half) return
    if (this.#weight + weight > this.#half) {
      this.#older = this.#newer
      this.#newer = new Map()
      this.#weight = 0
    }
    this.#newer.set(key, { value, weight })
    this.#weight += weight
  }

  delete(key: K): void {
    this.#older.delete(key)
    this.#weight -= this.#newer.get(key)?.weight ?? 0
    this.#newer.delete(key)
  }

  clear(): void {
    this.#older.clear()
    this.#newer.clear()
    this.#weight = 0
  }

  /** In the order they were put in. */
  *values(): Generator<V> {
    for (const half of [this.#older, this.#newer]) for (const { value } of half.values()) yield value
  }
}
