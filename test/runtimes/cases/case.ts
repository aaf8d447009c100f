import type { RuntimeNode } from '../node/node.ts'

export interface Case {
  name: string
  /** The containerd that it needs, like `2.0`; without: every one. */
  needs?: string
  /** @returns what was seen, in a few words @throws {Error} what differs from the promise */
  run(node: RuntimeNode): Promise<string>
}
