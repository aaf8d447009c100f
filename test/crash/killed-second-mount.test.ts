import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { FULL, PATIENCE } from '../helpers/size.ts'
import { Crashing } from './every-call.ts'

const title = `a mount of a volume that was walked before, killed at any of its changes${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '').each(FULL ? (['tmpfs', 'ext4'] as const) : (['tmpfs'] as const))(
  `${title}, on %s`,
  (fsType) => {
    it(
      "a second pod's mount, killed at any change, does not affect the first pod's, and the last unmount restores the volume",
      async () => {
        const on = new Crashing(fsType)
        const more = { fsGroupChangePolicy: 'Always' }
        const goOn = async () => {
          expect(on.node.layers('a')).toHaveLength(1)
          on.expectSound(['a', 'b'])
          await on.mount('b', more)
          await on.unmount('a')
          on.expectSound(['b'])
          await on.unmount('b')
          on.expectOriginal()
        }
        const points = await on.killEverywhere('second pod', on.mountCall('b', more), () => on.mount('a'), [goOn])
        expect(points).toBeGreaterThan(15)
      },
      PATIENCE,
    )

    it(
      'a repeated mount, killed at any change, does not affect the existing mount',
      async () => {
        const on = new Crashing(fsType)
        const goOn = async () => {
          expect(on.node.layers('a')).toHaveLength(1)
          on.expectSound(['a'])
          await on.mount('a')
          await on.unmount('a')
          on.expectOriginal()
        }
        const points = await on.killEverywhere('repeated mount', on.mountCall('a'), () => on.mount('a'), [goOn])
        expect(points).toBeGreaterThan(0)
      },
      PATIENCE,
    )
  },
)
