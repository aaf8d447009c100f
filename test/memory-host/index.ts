import { DatabaseSync } from 'node:sqlite'
import type { Host, Lock } from '../../src/kernel/host.ts'
import { createTrustedFiles } from '../../src/kernel/trusted-files.ts'
import { memoryBlockDevices } from './block-devices.ts'
import { memoryHelpers } from './helpers.ts'
import { memoryInodes } from './inodes.ts'
import { mortalFs } from './mortal-fs.ts'
import { memoryMounts } from './mounts.ts'
import type { MemoryWorld } from './world.ts'

/** Creates a host over a world in memory. The world logs every effect, and a process can be killed at any of them. */
export function memoryHost(world: MemoryWorld): Host {
  // The key is the inode of the file, because the file may be moved with its directory.
  const databases = new Map<number, DatabaseSync>()
  const inodeOf = (path: string) => Number(world.fs.statSync(path).ino)

  return {
    inodes: memoryInodes(world),
    mounts: memoryMounts(world),
    helpers: memoryHelpers(world),
    blocks: memoryBlockDevices(world),
    files: createTrustedFiles(mortalFs(world)),

    daemons: {
      find: () => undefined,
      answers: () => Promise.resolve(true),
      lookUp: () => Promise.resolve('found'),
      below: () => [],
      kill: () => {},
    },

    // No other process reports on a lock in memory.
    readBlockedActivity: () => undefined,
    callWorker: () => Promise.reject(new Error('a node in memory has one process')),

    tryLock(path): Lock | undefined {
      world.alive()
      if (world.locked.has(path)) return undefined
      world.fs.writeFileSync(path, '')
      world.locked.add(path)
      let held = true
      const release: Lock['release'] = (discard) => {
        if (!held) return
        held = false
        world.locked.delete(path)
        // A killed process has also released its locks, but does not remove the file.
        if (!discard) return
        world.alive()
        world.fs.rmSync(path, { force: true })
      }
      return { release, [Symbol.dispose]: release }
    },

    tryWorkerLock(lock) {
      return this.tryLock(lock)
    },

    isLocked: (path) => world.locked.has(path),
    isWorkerLockHeld: (lock) => world.locked.has(lock),
    lockHolder: () => undefined,
    endAbandoned: () => undefined,
    whileUnlocked: (path, look) => (world.locked.has(path) ? 'locked' : look()),

    openDatabase(path) {
      world.alive()
      const known = world.fs.existsSync(path) ? databases.get(inodeOf(path)) : undefined
      const database = known ?? createMortalDatabase(new DatabaseSync(':memory:', { readBigInts: true }), world)
      // After a crash, SQLite's next user rolls back the uncommitted changes.
      if (database.isTransaction) database.exec('ROLLBACK')
      world.fs.writeFileSync(path, '')
      databases.set(inodeOf(path), database)
      return database
    },

    createDatabase(path, fill) {
      fill(this.openDatabase(path))
    },

    monotonicMs: () => 0,
    bootId: () => world.boot,
    runningPods: () => new Set(),
    processesNow: () => () => false,
    mountNamespace: () => 'memory',
  }
}

/** Keeps a database's content beyond its close(), as a file does. Its commits are effects. */
function createMortalDatabase(database: DatabaseSync, world: MemoryWorld): DatabaseSync {
  const exec = database.exec.bind(database)
  database.exec = (sql) => {
    if (sql === 'COMMIT') world.act('commit journal')
    else if (sql !== 'ROLLBACK') world.alive()
    exec(sql)
  }
  // Temporary tables belong to their connection.
  database.close = () => {
    for (const { name } of database.prepare("SELECT name FROM sqlite_temp_schema WHERE name NOT LIKE 'sqlite%'").all())
      exec(`DROP TABLE temp.${name}`)
  }
  return database
}
