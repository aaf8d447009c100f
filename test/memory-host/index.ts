import { DatabaseSync } from 'node:sqlite'
import type { Host, Lock } from '../../src/host/host.ts'
import { trustedFiles } from '../../src/host/trusted-files.ts'
import { memoryBlockDevices } from './block-devices.ts'
import { memoryHelpers } from './helpers.ts'
import { memoryInodes } from './inodes.ts'
import { mortalFs } from './mortal-fs.ts'
import { memoryMounts } from './mounts.ts'
import type { MemoryWorld } from './world.ts'

/** A host over a world in memory. Every effect is in the world's action log and can be the one a process dies at. */
export function memoryHost(world: MemoryWorld): Host {
  // By the inode of the file, which may be moved with its directory.
  const databases = new Map<number, DatabaseSync>()
  const inodeOf = (path: string) => Number(world.fs.statSync(path).ino)

  return {
    inodes: memoryInodes(world),
    mounts: memoryMounts(world),
    helpers: memoryHelpers(world),
    blocks: memoryBlockDevices(world),
    files: trustedFiles(mortalFs(world)),

    daemons: {
      find: () => undefined,
      answers: () => Promise.resolve(true),
      lookUp: () => Promise.resolve('found'),
      below: () => [],
      kill: () => {},
    },

    // Nobody else tells of what lies in memory.
    readBlockedActivity: () => undefined,
    runErrand: () => Promise.reject(new Error('a node in memory has one process')),

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
        // A process that is dead has given its locks back too; what it does not do is remove the file.
        if (!discard) return
        world.alive()
        world.fs.rmSync(path, { force: true })
      }
      return { release, [Symbol.dispose]: release }
    },

    tryErrand(lock) {
      return this.tryLock(lock)
    },

    isLocked: (path) => world.locked.has(path),
    hasErrand: (lock) => world.locked.has(lock),
    lockHolder: () => undefined,
    endAbandoned: () => undefined,
    whileUnlocked: (path, look) => (world.locked.has(path) ? 'locked' : look()),

    openDatabase(path) {
      world.alive()
      const known = world.fs.existsSync(path) ? databases.get(inodeOf(path)) : undefined
      const database = known ?? mortal(new DatabaseSync(':memory:', { readBigInts: true }), world)
      // Where a process died, SQLite's next user rolls back what was not committed.
      if (database.isTransaction) database.exec('ROLLBACK')
      world.fs.writeFileSync(path, '')
      databases.set(inodeOf(path), database)
      return database
    },

    monotonicMs: () => 0,
    bootId: () => world.boot,
    runningPods: () => new Set(),
    processesNow: () => () => false,
    mountNamespace: () => 'memory',
  }
}

/** A database that outlives its close() as a file would, and whose commits are effects. */
function mortal(database: DatabaseSync, world: MemoryWorld): DatabaseSync {
  const exec = database.exec.bind(database)
  database.exec = (sql) => {
    if (sql === 'COMMIT') world.act('commit journal')
    else if (sql !== 'ROLLBACK') world.alive()
    exec(sql)
  }
  // Its temporary tables are its connection's.
  database.close = () => {
    for (const { name } of database.prepare("SELECT name FROM sqlite_temp_schema WHERE name NOT LIKE 'sqlite%'").all())
      exec(`DROP TABLE temp.${name}`)
  }
  return database
}
