import { expect, it } from 'vitest'
import { Wakeup } from '../../../src/frontends/device-plugin/plugin.ts'

const FOREVER = 1_000_000_000

it('a sleep ends when it is woken', async () => {
  const wakeup = new Wakeup()
  const slept = wakeup.sleep(FOREVER)
  wakeup.wake()
  await slept
})

it('a wake that comes before the sleep is kept, once', async () => {
  const wakeup = new Wakeup()
  wakeup.wake()
  wakeup.wake()
  await wakeup.sleep(FOREVER)
  const next = wakeup.sleep(FOREVER).then(() => 'woken')
  expect(await Promise.race([next, Promise.resolve('asleep')])).toBe('asleep')
  wakeup.wake()
  expect(await next).toBe('woken')
})

it('a sleep ends by itself', async () => {
  await new Wakeup().sleep(1)
})
