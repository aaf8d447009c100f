import type { Handle, Inodes } from '../../host/host.ts'
import { SELF } from '../../ownership/walk/entry.ts'
import { wholeTree } from '../../ownership/walk/frames.ts'
import { traverse, type Visitor } from '../../ownership/walk/traverse.ts'

const EACH = 20_000

/**
 * How many inodes a walk will meet, about: names are counted, and only directories opened. It gives way to other events
 * on its way.
 */
export async function countInodes(inodes: Inodes, root: Handle): Promise<number> {
  let counted = 1
  let stopAt = EACH
  const visitor: Visitor = {
    entry() {
      counted++
      return false
    },
    directory() {
      counted++
    },
    left() {},
    stops: () => counted >= stopAt,
  }
  const top = inodes.openDirectory(root, SELF)
  try {
    const stat = inodes.stat(top)
    let rest = traverse(inodes, wholeTree(inodes, top, stat), stat, visitor)
    while (rest) {
      await new Promise((resolve) => setImmediate(resolve))
      stopAt = counted + EACH
      rest = traverse(inodes, rest, stat, visitor)
    }
  } finally {
    inodes.close(top)
  }
  return counted
}
