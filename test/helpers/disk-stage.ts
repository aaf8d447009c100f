import type { MemoryFileSystem } from '../memory-host/world.ts'
import { memoryStage, type Stage } from './stage.ts'
import { makeTree } from './tree.ts'

/** Where the disk is mounted. */
export const PLACE = '/node/volumes/disk'

/** A node in memory with a disk of one file. @param identities what the disk says of itself */
export function createDiskStage(identities: string[]): { stage: Stage; disk: MemoryFileSystem } {
  const stage = memoryStage()
  const { world } = stage
  if (world === undefined) throw new Error('no stage in memory')
  makeTree(stage.fs, PLACE, [])
  const disk = world.addFileSystem()
  makeTree(disk.fs as unknown as typeof stage.fs, '/', ['file one 0640 7'])
  world.addMount(disk, '').at = { mount: world.rootMount, path: PLACE }
  disk.disk = identities
  return { stage, disk }
}
