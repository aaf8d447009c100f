import type { TestNode } from '../node/node.ts'
import type { Pod } from '../node/pod.ts'

/** What was seen of the two drivers, in a few words; without `naive` where it would show no difference. */
export interface Seen {
  modekeep: string
  naive?: string
}

export interface Scene<Node extends TestNode = TestNode> {
  node: Node
  /** Files of the volume in whose walk the kubelet is killed. */
  files: number
  /** Returns when the kubelet has been restarted three times and has called for these pods' volumes each time. */
  threeRestarts(...pods: readonly Pod[]): Promise<void>
}

/** Of a certain node where it needs more of it than every one has. */
export interface Case<Node extends TestNode = TestNode> {
  name: string
  /**
   * restarts: together with others, awaits `threeRestarts` once. together: with others, while no case restarts the
   * kubelet. alone: nothing else is done at that time.
   */
  when: 'restarts' | 'together' | 'alone'
  /** It holds a main promise of the README: npm test runs it, the others are npm run test:long's. */
  small?: true
  /** @throws {Error} what differs from the promise, or that the control shows no difference */
  run(scene: Scene<Node>): Promise<Seen>
}
