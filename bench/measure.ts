import { pause } from './command.ts'
import type { Caller, Walker } from './peers/peer.ts'
import { addCost, type Measurement, WALKS } from './results.ts'
import { inOrder } from './statistics.ts'
import { checkTree, resetTree, UNTOUCHED } from './tree.ts'
import type { Tree } from './trees.ts'
import { settle } from './volume.ts'

/** A tree, where it is, and where its costs go. */
export interface Subject {
  tree: Tree
  at: string
  into: Measurement[]
}

// A volume in use has old ctimes; how young one may be for modekeep to look twice is a second.
const AGE = 1300
const CALLS_PER_ROUND = 8

/** Each walker does all that it does with the tree, and finds the tree as it was. */
export function measureWalks({ tree, at, into }: Subject, walkers: readonly Walker[], round: number): void {
  for (const walker of inOrder(walkers, round)) {
    try {
      for (const name of WALKS) {
        const walk = walker.walks[name]
        if (!walk) continue
        settle(at)
        if (walker.isRecording && (name === 'first walk' || name === 'restore')) pause(AGE)
        addCost(into, tree, name, walker.name, walk(at))
        if (round === 0) checkTree(at, name === 'survey' || name === 'restore' ? UNTOUCHED : walker.access)
      }
    } finally {
      walker.finish?.()
      if (walker.access !== UNTOUCHED) resetTree(at)
    }
  }
}

/** The same call again and again, the callers taking turns; mounts while the volume is mounted. */
export function measureCalls({ tree, at, into }: Subject, callers: readonly Caller[], rounds: number): void {
  for (const caller of callers) caller.call(at)
  settle(at)
  for (let turn = 0; turn < rounds * CALLS_PER_ROUND; turn++) {
    for (const caller of inOrder(callers, turn)) addCost(into, tree, 'call', caller.name, caller.call(at))
  }
  for (const caller of callers) caller.finish?.()
}
