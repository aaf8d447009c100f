import { resolve } from 'node:path'
import { ForksPoolWorker, type PoolOptions } from 'vitest/node'

const NAME = 'own-mounts'
const WRAPPER = resolve(import.meta.dirname, 'own-mounts.sh')

/** Runs each file of tests in a process with mounts of its own, so that files can run at one time. */
export class OwnMounts extends ForksPoolWorker {
  // Without isolation a worker is given the next file only while it bears the name of its pool.
  override name = NAME

  override start(): Promise<void> {
    const node = process.execPath
    // What fork() starts, right away.
    process.execPath = WRAPPER
    try {
      return super.start()
    } finally {
      process.execPath = node
    }
  }
}

/** Only root may have a mount namespace. */
export const ownMounts =
  process.getuid?.() === 0
    ? { name: NAME, createPoolWorker: (options: PoolOptions) => new OwnMounts(options) }
    : 'forks'
