import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { CloneRequest } from '../../src/container/clone-request.ts'
import { reconcileContainers, releaseContainerClones } from '../../src/container/container-task.ts'
import { openNodeDirectoryVolume, restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { CONTAINER, nodeWith, type TestNode } from './node.ts'

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

/** Restores the volume once the container is gone. @returns the outcome */
export async function restoreFresh(node: TestNode): Promise<string> {
  await releaseContainerClones(node.session, CONTAINER, 'gone')
  reconcileContainers(node.session)
  const volume = await openNodeDirectoryVolume(node.session, node.source, { set: 0, clear: 0 })
  const { outcome } = await restoreNodeDirectory(node.session, volume)
  node.session.host.inodes.close(volume.tree)
  return outcome
}

/** Owner, group and mode of an inode. */
export function describeInode(path: string): string {
  const { uid, gid, mode } = fs.lstatSync(path)
  return `${uid}:${gid} ${(mode & 0o7777).toString(8)}`
}
