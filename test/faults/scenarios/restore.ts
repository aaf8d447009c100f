import { expect } from 'vitest'
import { expectSame, snapshot } from '../../crash/volume.ts'
import { hasSucceeded, type Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'

const byHand = (on: FaultNode) => ['restore', on.source]

async function mountAgain(on: FaultNode): Promise<void> {
  await on.succeed(on.mountCall('a'))
  on.expectShows('a', on.whole)
}

export const RESTORE: Situation[] = [
  {
    title: 'unmount with a restore',
    reader: 'kubelet',
    args: (on) => on.unmountCall('a'),
    before: mountAgain,
    sound: (on) => on.expectSound(['a']),
    promised: (on) => expect(on.node.layers('a')).toEqual([]),
    next: [
      mountAgain,
      // What an unmount could not restore stays pending for the volume; one that failed is called again.
      async (on, { ended }) => {
        if (hasSucceeded('kubelet', ended)) await mountAgain(on)
      },
    ],
  },
  {
    title: 'restore by hand',
    reader: 'person',
    isHealed: true,
    args: byHand,
    async before(on) {
      await on.succeed(on.mountCall('a', { restoreOnUnmount: 'false' }))
      await on.succeed(on.unmountCall('a'))
      expectSame(snapshot(on.source), on.whole)
    },
    sound: (on) => on.expectSound(['a']),
    promised: (on) => on.expectUntouched(),
    next: [
      async (on) => {
        await on.succeedByHand(byHand(on))
        on.expectUntouched()
      },
      mountAgain,
    ],
  },
]
