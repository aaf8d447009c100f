import type { Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'

const walking = (on: FaultNode) => on.mountCall('a')
const isWhole = (on: FaultNode) => on.expectShows('a', on.whole)

/** A call that ended before its walk began leaves a volume without a pending restore. */
async function mountAgain(on: FaultNode): Promise<void> {
  await on.succeed(walking(on))
  isWhole(on)
}

export const WALK: Situation[] = [
  {
    title: 'mount with a walk',
    reader: 'kubelet',
    args: walking,
    sound: (on) => on.expectSound(['a']),
    promised: isWhole,
    next: [
      mountAgain,
      async (on) => {
        await on.succeed(on.unmountCall('a'))
        on.expectSound(['a'])
        await mountAgain(on)
      },
    ],
  },
]
