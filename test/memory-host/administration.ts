import { createNodeFiles, type DriverResult, type NodeAdministration } from '../../src/kernel/administration.ts'
import { memoryHost } from './index.ts'
import { mortalFs } from './mortal-fs.ts'
import type { MemoryWorld } from './world.ts'

/** Creates the installer's operations on a world in memory. @param answer output of a driver with these bytes */
export function memoryAdministration(world: MemoryWorld, answer: (driver: string) => string): NodeAdministration {
  return {
    files: createNodeFiles(mortalFs(world)),
    host: memoryHost(world),
    tryLockDirectory(path) {
      world.alive()
      if (world.locked.has(path)) return undefined
      world.locked.add(path)
      const release = () => void world.locked.delete(path)
      return { release, [Symbol.dispose]: release }
    },
    async tryDriver({ command: [driver] }): Promise<DriverResult> {
      world.alive()
      return { text: answer(world.fs.readFileSync(driver, 'utf8') as string), status: 0, isLate: false }
    },
  }
}
