import type * as NodeFs from 'node:fs'
import { expect, it } from 'vitest'
import type { Inodes } from '../../src/kernel/host.ts'
import { Journal } from '../../src/ownership/journal/journal.ts'
import { applyGroupToTree, restoreTreeOwnership } from '../../src/ownership/walks.ts'
import { FS_GROUP } from '../helpers/mount-records.ts'
import { makeTree } from '../helpers/tree.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

// A call dies between chown and chmod, the next one finishes. Then either nothing, or a write by a user, for which the
// kernel takes set-uid away.
it.each<[string, boolean, string, number]>([
  ['is restored with set-uid', false, '104775', 5],
  ['and that was written to since is restored without set-uid', true, '100775', 2000],
])('a set-uid file whose chown was interrupted %s', async (_what, writes, mode, gid) => {
  const world = new MemoryWorld()
  makeTree(world.fs as unknown as typeof NodeFs, '/vol', ['file suid 4775 5'])
  const host = memoryHost(world)
  const walk = async (work: (inodes: Inodes, journal: Journal) => Promise<unknown>, inodes = host.inodes) => {
    const journal = Journal.open(host, '/journal.db', 'v')
    try {
      await work(inodes, journal)
    } finally {
      journal.close()
    }
  }
  const root = host.inodes.openLinkFree('/vol')
  const look = () => {
    const stat = world.fs.statSync('/vol/suid')
    return [Number(stat.mode).toString(8), Number(stat.gid)]
  }
  const dying: Inodes = {
    ...host.inodes,
    chmod() {
      throw new Error('died')
    },
  }
  await expect(walk((inodes, journal) => applyGroupToTree(inodes, root, FS_GROUP, journal), dying)).rejects.toThrow(
    'died',
  )
  expect(look()).toEqual(['100775', 2000])
  await walk((inodes, journal) => applyGroupToTree(inodes, root, FS_GROUP, journal))
  expect(look()).toEqual(['104775', 2000])
  if (writes) {
    world.fs.writeFileSync('/vol/suid', 'other content')
    world.fs.chmodSync('/vol/suid', 0o775)
    world.fs.utimesSync('/vol/suid', 2_000_000_000, 2_000_000_000)
  }
  await walk((inodes, journal) => restoreTreeOwnership(inodes, root, journal))
  expect(look()).toEqual([mode, gid])
})
