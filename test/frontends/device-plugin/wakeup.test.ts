import { expect, it } from 'vitest'
import { WakeableSleep } from '../../../src/frontends/device-plugin/plugin.ts'

const FOREVER = 1_000_000_000

it('a sleep ends when it is woken', async () => {
  const wakeup = new WakeableSleep()
  const slept = wakeup.sleep(FOREVER)
  wakeup.wake()
  await slept
})

it('a wake that comes before the sleep is kept, once', async () => {
  const wakeup = new WakeableSleep()
  wakeup.wake()
  wakeup.wake()
  await wakeup.sleep(FOREVER)
  const next = wakeup.sleep(FOREVER).then(() => 'woken')
  expect(await Promise.race([next, Promise.resolve('asleep')])).toBe('asleep')
  wakeup.wake()
  expect(await next).toBe('woken')
})

it('a sleep ends by itself', async () => {
  await new WakeableSleep().sleep(1)
})
