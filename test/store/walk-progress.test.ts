import { expect, it } from 'vitest'
import { readWalkProgress, removeWalkProgress, writeWalkProgress } from '../../src/store/walk-progress.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const PROGRESS = { pid: 12, at: 1_790_000_000_000, visited: 40_000, changed: 39_999 }

it('the progress of a walk is there while it walks', () => {
  const host = memoryHost(new MemoryWorld())
  host.files.makeDirectory('/state/ownership/v')
  expect(readWalkProgress(host, '/state', 'v')).toBeUndefined()
  writeWalkProgress(host, '/state', 'v', PROGRESS)
  expect(readWalkProgress(host, '/state', 'v')).toEqual(PROGRESS)
  removeWalkProgress(host, '/state', 'v')
  removeWalkProgress(host, '/state', 'v')
  expect(readWalkProgress(host, '/state', 'v')).toBeUndefined()
})

it('what is no progress reads as none', () => {
  const host = memoryHost(new MemoryWorld())
  host.files.makeDirectory('/state/ownership/v')
  host.files.replace('/state/ownership/v/progress.json', '{"pid":"12"}')
  expect(readWalkProgress(host, '/state', 'v')).toBeUndefined()
})
