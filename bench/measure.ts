import { pause } from './command.ts'
import type { FileSystem } from './options.ts'
import type { Driver, Walker } from './peers/peer.ts'
import { addTime, type Measurement } from './results.ts'
import { inOrder } from './statistics.ts'
import { checkTree, resetTree } from './tree.ts'
import { settle } from './volume.ts'

/** A tree, and where the times go. */
export interface Subject {
  fileSystem: FileSystem
  files: number
  tree: string
  into: Measurement[]
}

// A volume in use has old ctimes; how young one may be for modekeep to look twice is a second.
const AGE = 1300
const REPEATED_MOUNTS_PER_ROUND = 10

/** The first walk and the one with nothing to do, in one round: each walker finds the tree as it was. */
export function measureWalks(subject: Subject, walkers: readonly Walker[], round: number): void {
  const { fileSystem, files, tree, into } = subject
  for (const walker of inOrder(walkers, round)) {
    const walk = (name: 'first walk' | 'nothing to do') => {
      settle(tree)
      if (name === 'first walk') pause(AGE)
      addTime(into, { fileSystem, files, case: name, peer: walker.name }, walker.walk(tree))
      if (round === 0) checkTree(tree, walker.access)
    }
    resetTree(tree)
    try {
      walk('first walk')
      walk('nothing to do')
    } finally {
      walker.finish()
    }
  }
}

/** The same mount call again and again while the volume is mounted, the drivers taking turns. */
export function measureRepeatedMounts(subject: Subject, drivers: readonly Driver[], rounds: number): void {
  const { fileSystem, files, tree, into } = subject
  for (const driver of drivers) driver.mount(tree)
  settle(tree)
  for (let turn = 0; turn < rounds * REPEATED_MOUNTS_PER_ROUND; turn++) {
    for (const driver of inOrder(drivers, turn)) {
      addTime(into, { fileSystem, files, case: 'repeated mount', peer: driver.name }, driver.mount(tree))
    }
  }
  for (const driver of drivers) driver.unmount()
}
