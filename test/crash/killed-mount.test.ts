import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { FULL, PATIENCE } from '../helpers/size.ts'
import { Crashing } from './every-call.ts'

const title = `a mount killed at any of its changes${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '').each(FULL ? (['tmpfs', 'ext4'] as const) : (['tmpfs'] as const))(
  `${title}, on %s`,
  (fsType) => {
    it(
      'a mount killed at any change shows nothing or the complete volume, and the next mount or unmount completes',
      async () => {
        const on = new Crashing(fsType)
        const mountAgain = async () => {
          on.expectSound(['a'])
          await on.mount('a')
          await on.unmount('a')
          on.expectOriginal()
        }
        const unmountFirst = async () => {
          on.expectSound(['a'])
          await on.unmount('a')
          on.expectSound(['a'])
          await on.mount('a')
          await on.unmount('a')
          on.expectOriginal()
        }
        const ways = [mountAgain, unmountFirst]
        const points = await on.killEverywhere('mount', on.mountCall('a'), async () => {}, ways)
        expect(points).toBeGreaterThan(40)
      },
      PATIENCE,
    )
  },
)
