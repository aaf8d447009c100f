import type { Cluster } from '../plane/cluster.ts'

export interface Case {
  name: string
  /** The kubelet from which on it can be run, like `1.22`. */
  needs?: string
  /** What else it needs that this cluster does not have, like `needs containerd 2.0`; undefined where it has all. */
  lacks?(cluster: Cluster): string | undefined
  /** The first kubelet on which it cannot be run any more. */
  before?: string
  /**
   * Runs alone, on a cluster that has the driver, and leaves it so.
   * @returns what was seen, in a few words
   * @throws {Error} what differs from the promise
   */
  run(cluster: Cluster): Promise<string>
}
