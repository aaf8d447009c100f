import { basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createFault } from '../../errors/fault.ts'
import { type Host, refuseOnErrno } from '../host.ts'
import { nodeFs, readTextFile } from '../read-file.ts'
import { createTrustedFiles } from '../trusted-files.ts'
import { assertOwnFiles } from '../write-file.ts'
import { findBackingStorage, readSourceBackingStorage } from './backing.ts'
import {
  attachLoopDevice,
  findDeviceNode,
  findLoopDevice,
  isDeviceOfMountRow,
  isReadOnlyDevice,
  openDeviceNode,
  readDeviceStart,
} from './block-devices.ts'
import { linuxDaemons } from './daemons.ts'
import { findFileSystemUsers, isDeviceClaimed, listFileSystemDevices } from './file-system-users.ts'
import { linuxInodes } from './inodes.ts'
import { findLockHolders, killAbandonedLockHolder, readBlockedThreadCounters } from './lock-holders.ts'
import { callWhileUnlocked, isLockedFile, isLockHeldByAnyProcess, tryLockFile, tryLockIsolatedFile } from './locks.ts'
import { linuxMounts } from './mounts.ts'
import { listRunningPodUids, snapshotContainerProcesses } from './processes.ts'

/** The header of a database names the versions that write and read it: https://www.sqlite.org/fileformat2.html */
const DATABASE_VERSIONS_OFFSET = 18
const WAL_FORMAT_VERSION = 2
const SQLITE_FILE_SUFFIXES = ['-journal', '-wal', '-shm']

function assertOwnDatabaseFiles(path: string): void {
  assertOwnFiles(
    nodeFs,
    dirname(path),
    ['', ...SQLITE_FILE_SUFFIXES].map((suffix) => basename(path) + suffix),
  )
}

/** No process outlives a boot. */
let knownBootId: string | undefined

function readBootId(): string {
  const path = '/proc/sys/kernel/random/boot_id'
  return refuseOnErrno(
    () => readTextFile(path).trim(),
    () => ({
      ENOENT: createFault(
        'file-access',
        `${path} is missing, because /proc is mounted with subset=pid`,
        'mount /proc without that option where modekeep runs',
      ),
    }),
  )
}

/** The node on which this process runs. */
export const linuxHost: Host = {
  inodes: linuxInodes,
  mounts: linuxMounts,
  blocks: {
    backingOf: findBackingStorage,
    asBacking: readSourceBackingStorage,
    open: openDeviceNode,
    isReadOnly: isReadOnlyDevice,
    nameOf: findDeviceNode,
    isShownBy: isDeviceOfMountRow,
    start: readDeviceStart,
    loopOf: findLoopDevice,
    attachLoop: attachLoopDevice,
    devicesOf: listFileSystemDevices,
    isClaimed: isDeviceClaimed,
    findUsers: findFileSystemUsers,
  },
  files: createTrustedFiles(nodeFs),
  // Loaded on demand: calls for mounts of the kernel need no code that runs programs.
  helpers: { run: async (invocation) => (await import('./helpers.ts')).createLinuxHelperRunner().run(invocation) },
  daemons: linuxDaemons,
  callWorker: async (call) => (await import('./child-process.ts')).runTaskInWorker(call),
  tryLock: tryLockFile,
  isLocked: isLockedFile,
  isWorkerLockHeld: isLockHeldByAnyProcess,
  tryWorkerLock: tryLockIsolatedFile,
  lockHolder: (path) => findLockHolders(path)[0],
  readBlockedActivity: readBlockedThreadCounters,
  whileUnlocked: callWhileUnlocked,
  endAbandoned: killAbandonedLockHolder,
  openDatabase(path, which) {
    assertOwnDatabaseFiles(path)
    // SQLite opens these paths itself and follows links. Only calls that walk load it.
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    const file = which === 'existing' ? `${pathToFileURL(path).href}?mode=rw` : path
    return new DatabaseSync(file, { timeout: 5000, readBigInts: true })
  },
  createDatabase(path, fill) {
    assertOwnDatabaseFiles(path)
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    const database = new DatabaseSync(':memory:')
    try {
      fill(database)
      const image = database.serialize()
      image.fill(WAL_FORMAT_VERSION, DATABASE_VERSIONS_OFFSET, DATABASE_VERSIONS_OFFSET + 2)
      // SQLite would take the log of a former file for this one's.
      for (const suffix of SQLITE_FILE_SUFFIXES) linuxHost.files.remove(path + suffix)
      linuxHost.files.replaceUntilDirectorySync(path, image)
    } finally {
      database.close()
    }
  },
  runningPods: listRunningPodUids,
  processesNow: snapshotContainerProcesses,
  mountNamespace: () => nodeFs.readlinkSync('/proc/self/ns/mnt'),
  monotonicMs: () => Math.floor(Number(process.hrtime.bigint() / 1_000_000n)),
  bootId: () => (knownBootId ??= readBootId()),
}
