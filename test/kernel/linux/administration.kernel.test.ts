import { expect, it } from 'vitest'
import { linuxAdministration } from '../../../src/kernel/linux/administration.ts'

it('a driver whose child keeps its output open counts as late, as for kubelet, and is not waited for', async () => {
  const { text, isLate } = await linuxAdministration.tryDriver({
    command: ['sh', '-c', 'setsid sleep 600 & echo $!'],
    environment: { PATH: process.env.PATH ?? '' },
    seconds: 1,
    stop: new AbortController().signal,
  })
  process.kill(Number(text), 'SIGKILL')
  expect(isLate).toBe(true)
})
