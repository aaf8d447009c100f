type WeightedEntries<K, V> = Map<K, { value: V; weight: number }>

/**
 * A cache of the newest entries, limited by their weight: at least half of `maxWeight` is kept, at most all of it. A
 * pod can have any number of different values.
 * Two halves are kept, because deleting the oldest key of a Map repeatedly scans all keys deleted before.
 */
export class WeightedCache<K, V> {
  readonly #half: number
  #older: WeightedEntries<K, V> = new Map()
  #newer: WeightedEntries<K, V> = new Map()
  /** Weight of the newer half. */
  #weight = 0

  constructor(maxWeight: number) {
    this.#half = maxWeight / 2
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

  /** Values in order of insertion. */
  *values(): Generator<V> {
    for (const half of [this.#older, this.#newer]) for (const { value } of half.values()) yield value
  }
}
