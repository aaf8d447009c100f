import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { FULL, PATIENCE } from '../helpers/size.ts'
import { Crashing } from './every-call.ts'

const title = `an unmount with restore, killed at any of its changes${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '').each(FULL ? (['tmpfs', 'ext4'] as const) : (['tmpfs'] as const))(
  `${title}, on %s`,
  (fsType) => {
    it(
      'an unmount with a restore, killed at any change, is completed by the next unmount, or by a mount and its unmount',
      async () => {
        const on = new Crashing(fsType)
        const unmountAgain = async () => {
          on.expectSound(['a'])
          await on.unmount('a')
          on.expectOriginal()
        }
        const mountNext = async () => {
          on.expectSound(['a'])
          await on.mount('a')
          await on.unmount('a')
          on.expectOriginal()
        }
        const args = ['unmount', on.node.podDirectory('a')]
        const points = await on.killEverywhere('unmount', args, () => on.mount('a'), [unmountAgain, mountNext])
        expect(points).toBeGreaterThan(30)
      },
      PATIENCE,
    )
  },
)
