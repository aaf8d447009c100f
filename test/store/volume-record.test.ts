import { expect, it } from 'vitest'
import type { Handle, Stat } from '../../src/host/host.ts'
import {
  readVolumeRecord,
  removeVolumeRecord,
  volumeIdentity,
  writeVolumeRecord,
} from '../../src/store/volume-record.ts'
import { sealed } from '../helpers/sealed.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const STATE = '/state'
const RECORD = {
  volume: 'fs-2-3',
  source: '/srv/a',
  group: 2000,
  groupAccess: 'keep' as const,
  complete: false,
  restorePending: false,
}

it('a volume record is written, read and removed', () => {
  const host = memoryHost(new MemoryWorld())
  expect(readVolumeRecord(host, STATE, 'fs-2-3')).toBeUndefined()
  writeVolumeRecord(host, STATE, RECORD)
  expect(readVolumeRecord(host, STATE, 'fs-2-3')).toEqual({ format: 2, ...RECORD })
  writeVolumeRecord(host, STATE, { ...RECORD, complete: true, restorePending: true })
  expect(readVolumeRecord(host, STATE, 'fs-2-3')).toEqual({
    format: 2,
    ...RECORD,
    complete: true,
    restorePending: true,
  })
  removeVolumeRecord(host, STATE, 'fs-2-3')
  expect(readVolumeRecord(host, STATE, 'fs-2-3')).toBeUndefined()
})

it.each([
  ['torn', '{"format":1,"volume":"fs-2-3"'],
  ['of a later format', JSON.stringify({ format: 3, ...RECORD })],
  ['of an unknown group access', JSON.stringify({ format: 2, ...RECORD, groupAccess: 'rw' })],
  ['with text for a group', JSON.stringify({ format: 2, ...RECORD, group: '2000' })],
  ['without its end', JSON.stringify({ format: 2, ...RECORD, complete: undefined })],
  ['without what is owed', JSON.stringify({ format: 2, ...RECORD, restorePending: undefined })],
])('a volume record that is %s reads as none', (_what, text) => {
  const world = new MemoryWorld()
  world.fs.mkdirSync('/state/ownership/fs-2-3', { recursive: true })
  world.fs.writeFileSync('/state/ownership/fs-2-3/record.json', text)
  expect(readVolumeRecord(memoryHost(world), STATE, 'fs-2-3')).toBeUndefined()
})

it('a volume record is looked for where those cases put theirs', () => {
  const world = new MemoryWorld()
  world.fs.mkdirSync('/state/ownership/fs-2-3', { recursive: true })
  world.fs.writeFileSync('/state/ownership/fs-2-3/record.json', sealed({ format: 2, ...RECORD }))
  expect(readVolumeRecord(memoryHost(world), STATE, 'fs-2-3')).toEqual({ format: 2, ...RECORD })
})

it('a volume is named by file system, root inode and birth, in all their bits', () => {
  const host = memoryHost(new MemoryWorld())
  const named = { ...host, inodes: { ...host.inodes, fileSystemId: () => 'f00d' } }
  const stat = { inode: 2n ** 64n - 1n, born: 1_700_000_000_000_000_000n } as Stat
  expect(volumeIdentity(named, 5 as Handle, stat)).toBe('f00d-ffffffffffffffff-17979cfe362a0000')
})
