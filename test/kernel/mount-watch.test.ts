import { closeSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createWatchStop, watchMountTable } from '../../src/kernel/linux/watches.ts'

it('a watch of the mount table ends when it is stopped, also if it was stopped before it started', () => {
  const stop = createWatchStop()
  stop.now()
  const told: string[] = []
  watchMountTable(
    stop.handle,
    () => told.push('ready'),
    () => told.push('changed'),
  )
  expect(told).toEqual(['ready'])
})

it('stopping a watch of the mount table does not throw if the watch has already failed', () => {
  const stop = createWatchStop()
  closeSync(stop.handle)
  expect(stop.now).not.toThrow()
})
