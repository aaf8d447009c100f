import { expect } from 'vitest'
import type { Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'
import { aDirectory, aFile, anImage, showsDirectory, showsFile, showsImage } from './mount.ts'

/** An unmount of what shows all until it is gone, and that can then be mounted anew. */
function unmounting(title: string, mount: Situation['args'], shows: (on: FaultNode) => void): Situation {
  return {
    title,
    reader: 'kubelet',
    args: (on) => on.unmountCall('a'),
    before: (on) => on.succeed(mount(on)),
    sound(on) {
      on.expectUntouched()
      expect([0, 1]).toContain(on.node.layers('a').length)
      if (on.node.layers('a').length === 1) shows(on)
    },
    promised(on) {
      expect(on.node.layers('a')).toEqual([])
      expect(on.shown('a')).toBe('')
    },
    next: [
      async () => {},
      async (on) => {
        await on.succeed(mount(on))
        shows(on)
      },
    ],
  }
}

export const UNMOUNT: Situation[] = [
  unmounting('unmount of a directory', aDirectory, showsDirectory),
  unmounting('unmount of a file', aFile, showsFile),
  {
    ...unmounting('unmount of an image', anImage, showsImage),
    async before(on) {
      on.putImage()
      await on.succeed(anImage(on))
    },
  },
]
