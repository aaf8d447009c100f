import { it } from 'vitest'
import { expectFlat, makeFiles, memoryNode, walkAndRestore } from './large-volume.ts'
import type { Measured } from './measured.ts'

it('a million files, in one directory and in 10,000, need the memory and the open handles of 10,000', async () => {
  const volumes: Measured[][] = []
  for (const [files, directories] of [
    [10_000, 0],
    [1_000_000, 0],
    [1_000_000, 10_000],
  ] as const) {
    const { node, source } = memoryNode()
    makeFiles(source, files, directories)
    const calls = await walkAndRestore(node, source, files + directories + 1)
    console.log(`${files} files, ${directories} directories below the root:`, calls)
    volumes.push(calls)
  }
  expectFlat(volumes)
})
