import { closeSync } from 'node:fs'
import { expect, it } from 'vitest'
import { createWatchStop, watchMountTable } from '../../src/host/linux/watches.ts'

it('a watch of the mount table ends at its stop, also where that came first', () => {
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

it('a stop throws nothing where the watch has failed before', () => {
  const stop = createWatchStop()
  closeSync(stop.handle)
  expect(stop.now).not.toThrow()
})
