import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { CloneRequest } from '../../src/container/clone-request.ts'
import { nodeWith, type TestNode } from './node.ts'

/** A node whose pod has a whole new file system as its volume, as a provisioner makes it. */
export function freshNode(fsType: string): TestNode {
  const node = nodeWith(fsType)
  execFileSync('umount', [node.source])
  fs.rmSync(node.volume, { recursive: true })
  execFileSync('mount', ['--bind', `${node.top}/fs`, node.source])
  return node
}

/** The request of a container that writes to the volume. */
export const freshRequest = (node: TestNode, over: Partial<CloneRequest> = {}) =>
  node.clone({ freshGroup: 'recorded', ...over })
