import { expect, it } from 'vitest'
import { linuxAdministration } from '../../../src/host/linux/administration.ts'

it('a driver that leaves a process with its output open is late, as it is to kubelet, and is waited for no longer', async () => {
  const { text, isLate } = await linuxAdministration.tryDriver({
    command: ['sh', '-c', 'setsid sleep 600 & echo $!'],
    environment: { PATH: process.env.PATH ?? '' },
    seconds: 1,
    stop: new AbortController().signal,
  })
  process.kill(Number(text), 'SIGKILL')
  expect(isLate).toBe(true)
})
