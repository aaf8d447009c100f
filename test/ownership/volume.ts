import type * as NodeFs from 'node:fs'
import type { Handle, Host } from '../../src/kernel/host.ts'
import { Journal } from '../../src/ownership/journal/journal.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

/** A directory in memory and the journal of its walks. */
export class MemoryVolume {
  readonly world = new MemoryWorld()
  readonly fs = this.world.fs as unknown as typeof NodeFs
  readonly host: Host = memoryHost(this.world)
  readonly directory = '/volume'

  /** Opens the directory and its journal for the time of `work`, as a call does. */
  async call<T>(work: (root: Handle, journal: Journal) => Promise<T>, isReading = false): Promise<T> {
    const root = this.host.inodes.openLinkFree(this.directory)
    const open = isReading ? Journal.openForReading : Journal.open
    const journal = open(this.host, '/journal.db', 'v')
    try {
      return await work(root, journal)
    } finally {
      journal.close()
    }
  }
}
