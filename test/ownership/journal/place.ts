import { DatabaseSync } from 'node:sqlite'
import type { Host } from '../../../src/kernel/host.ts'
import type { InodeRecord } from '../../../src/ownership/inode/record.ts'
import { memoryHost } from '../../memory-host/index.ts'
import { MemoryWorld } from '../../memory-host/world.ts'

/** A host in memory whose databases are files of the machine. */
export function databaseHost(): Host {
  return {
    ...memoryHost(new MemoryWorld()),
    openDatabase: (path: string) => new DatabaseSync(path, { readBigInts: true }),
    createDatabase: () => {},
  }
}

/** Of an inode that was given to another group. */
export function recordWith(inode: number, acl: InodeRecord['acl']): InodeRecord {
  const state = { gid: 5, mode: 0o640 }
  return {
    inode: BigInt(inode),
    born: 7n,
    path: new Uint8Array(Buffer.from(`file-${inode}`)),
    uid: 1000,
    before: state,
    capability: undefined,
    acl,
    modified: 1n,
    size: 3n,
    after: { gid: 2000, mode: 0o640 },
    seen: state,
    intended: state,
    capabilityIntact: true,
    forfeited: false,
    settled: true,
  }
}
