import { expect, it } from 'vitest'
import { UnknownFormatRefusal } from '../../src/errors/refusal.ts'
import type { Handle, Stat } from '../../src/kernel/host.ts'
import { DamagedRecord } from '../../src/state/record.ts'
import { resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { addChecksum } from '../helpers/sealed.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

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
  const store = { host, config: { stateDir: '/state' } }
  expect(volumeRecords.read(store, 'fs-2-3')).toBeUndefined()
  volumeRecords.write(store, RECORD)
  expect(volumeRecords.read(store, 'fs-2-3')).toEqual(RECORD)
  volumeRecords.write(store, { ...RECORD, complete: true, restorePending: true })
  expect(volumeRecords.read(store, 'fs-2-3')).toEqual({
    ...RECORD,
    complete: true,
    restorePending: true,
  })
  volumeRecords.remove(store, 'fs-2-3')
  expect(volumeRecords.read(store, 'fs-2-3')).toBeUndefined()
})

it.each([
  ['torn', '{"format":2,"volume":"fs-2-3"', DamagedRecord],
  ['without its checksum', JSON.stringify({ format: 2, ...RECORD }), DamagedRecord],
  ['without a format', addChecksum(RECORD), DamagedRecord],
  ['of an unknown group access', addChecksum({ format: 2, ...RECORD, groupAccess: 'rw' }), DamagedRecord],
  ['with text for a group', addChecksum({ format: 2, ...RECORD, group: '2000' }), DamagedRecord],
  ['without its end', addChecksum({ format: 2, ...RECORD, complete: undefined }), DamagedRecord],
  ['without its pending restore', addChecksum({ format: 2, ...RECORD, restorePending: undefined }), DamagedRecord],
  ["another volume's", addChecksum({ format: 2, ...RECORD, volume: 'fs-2-4' }), DamagedRecord],
  ['of an earlier format', JSON.stringify({ format: 1, ...RECORD }), UnknownFormatRefusal],
  ['of a later format with any content', JSON.stringify({ format: 3, volume: 7, sum: 'sha256' }), UnknownFormatRefusal],
])('a volume record that is %s is never read as missing', (_what, text, problem) => {
  const world = new MemoryWorld()
  const host = memoryHost(world)
  const store = { host, config: { stateDir: '/state' } }
  world.fs.mkdirSync('/state/ownership/fs-2-3', { recursive: true })
  world.fs.writeFileSync('/state/ownership/fs-2-3/record.json', text)
  expect(() => volumeRecords.read(store, 'fs-2-3')).toThrow(problem)
  expect(volumeRecords.has(store, 'fs-2-3')).toBe(true)
  expect(volumeRecords.find(store, 'fs-2-3').problem?.message).toContain('/state/ownership/fs-2-3/record.json')
})

it('a volume record is read from an undamaged file', () => {
  const world = new MemoryWorld()
  world.fs.mkdirSync('/state/ownership/fs-2-3', { recursive: true })
  world.fs.writeFileSync('/state/ownership/fs-2-3/record.json', addChecksum({ format: 2, ...RECORD }))
  expect(volumeRecords.read({ host: memoryHost(world), config: { stateDir: '/state' } }, 'fs-2-3')).toEqual(RECORD)
})

it('the name of a volume has all bits of its file system id, root inode number and birth time', () => {
  const host = memoryHost(new MemoryWorld())
  const named = { ...host, inodes: { ...host.inodes, fileSystemId: () => 'f00d' } }
  const stat = { inode: 2n ** 64n - 1n, born: 1_700_000_000_000_000_000n } as Stat
  expect(resolveVolumeIdentity({ host: named, config: { stateDir: '/state' } }, 5 as Handle, stat)).toBe(
    'f00d-ffffffffffffffff-17979cfe362a0000',
  )
})
