import { basename, dirname } from 'node:path'
import type { Host } from '../host.ts'
import { nodeFs, readText } from '../read-file.ts'
import { trustedFiles } from '../trusted-files.ts'
import { assertOwnFiles } from '../write-file.ts'
import { findBacking, readSourceBacking } from './backing.ts'
import {
  attachLoop,
  findDeviceName,
  findLoop,
  isReadOnlyDevice,
  isShownBy,
  openDeviceNode,
  readDeviceStart,
} from './block-devices.ts'
import { linuxDaemons } from './daemons.ts'
import { findUsers, isClaimed, listDevices } from './file-system-users.ts'
import { linuxInodes } from './inodes.ts'
import { endAbandoned, findLockHolders, readBlockedActivity } from './lock-holders.ts'
import { isHeldByAnyProcess, isLockedFile, tryIsolatedLock, tryLockFile, whileUnlocked } from './locks.ts'
import { linuxMounts } from './mounts.ts'
import { listRunningPods, snapshotProcesses } from './processes.ts'

/** The node on which this process runs. */
export const linuxHost: Host = {
  inodes: linuxInodes,
  mounts: linuxMounts,
  blocks: {
    backingOf: findBacking,
    asBacking: readSourceBacking,
    open: openDeviceNode,
    isReadOnly: isReadOnlyDevice,
    nameOf: findDeviceName,
    isShownBy,
    start: readDeviceStart,
    loopOf: findLoop,
    attachLoop,
    devicesOf: listDevices,
    isClaimed,
    findUsers,
  },
  files: trustedFiles(nodeFs),
  // Loaded on demand: calls for mounts of the kernel need no code that runs programs.
  helpers: { run: async (invocation) => (await import('./helpers.ts')).linuxHelpers().run(invocation) },
  daemons: linuxDaemons,
  callWorker: async (call) => (await import('./child-process.ts')).callWorker(call),
  tryLock: tryLockFile,
  isLocked: isLockedFile,
  isWorkerLockHeld: isHeldByAnyProcess,
  tryWorkerLock: tryIsolatedLock,
  lockHolder: (path) => findLockHolders(path)[0],
  readBlockedActivity,
  whileUnlocked,
  endAbandoned,
  openDatabase(path) {
    // Only calls that walk load SQLite. SQLite opens these paths itself and follows links.
    assertOwnFiles(
      nodeFs,
      dirname(path),
      ['', '-journal', '-wal', '-shm'].map((end) => basename(path) + end),
    )
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    return new DatabaseSync(path, { timeout: 5000, readBigInts: true })
  },
  runningPods: listRunningPods,
  processesNow: snapshotProcesses,
  mountNamespace: () => nodeFs.readlinkSync('/proc/self/ns/mnt'),
  monotonicMs: () => Math.floor(Number(process.hrtime.bigint() / 1_000_000n)),
  bootId: () => readText('/proc/sys/kernel/random/boot_id').trim(),
}
