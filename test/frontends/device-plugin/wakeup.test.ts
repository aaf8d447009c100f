import { expect, it } from 'vitest'
import { WakeableSleep } from '../../../src/frontends/device-plugin/plugin.ts'

const FOREVER = 1_000_000_000

it('a sleep ends as soon as wake is called', async () => {
  const wakeup = new WakeableSleep()
  const slept = wakeup.sleep(FOREVER)
  wakeup.wake()
  await slept
})

it('a wake before a sleep ends the next sleep at once, and only that one', async () => {
  const wakeup = new WakeableSleep()
  wakeup.wake()
  wakeup.wake()
  await wakeup.sleep(FOREVER)
  const next = wakeup.sleep(FOREVER).then(() => 'woken')
  expect(await Promise.race([next, Promise.resolve('asleep')])).toBe('asleep')
  wakeup.wake()
  expect(await next).toBe('woken')
})

it('a sleep without a wake ends at its time limit', async () => {
  await new WakeableSleep().sleep(1)
})
