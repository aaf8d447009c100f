import type * as NodeFs from 'node:fs'
import type { MemoryWorld } from './world.ts'

const EFFECTS = new Set([
  'appendFileSync',
  'chmodSync',
  'chownSync',
  'mkdirSync',
  'renameSync',
  'rmSync',
  'rmdirSync',
  'symlinkSync',
  'writeFileSync',
  'writeSync',
])

/** Returns the root file system for modekeep's own files. All calls except effects pass through. */
export function mortalFs(world: MemoryWorld): typeof NodeFs {
  const fs = new Proxy(world.fs, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (EFFECTS.has(String(key))) world.act(`${String(key)} ${args[0]}`)
        else world.alive()
        const [path = '', to = ''] = args.map(String)
        const isLink = /^(rm|rename)Sync$/.test(String(key)) && isSymbolicLink(target, path)
        // memfs 4.80 removes and renames the target of a link instead of the link.
        if (key === 'rmSync' && isLink) return target.unlinkSync(path)
        if (key === 'renameSync') {
          const there = target.lstatSync(to, { throwIfNoEntry: false })
          // memfs renames over a non-empty directory, whose content is lost.
          if (there?.isDirectory()) target.rmdirSync(to)
          // memfs miscounts a directory whose entry is renamed over, and never lets it be removed.
          else if (there) target.unlinkSync(to)
          if (isLink) {
            target.symlinkSync(target.readlinkSync(path) as string, to)
            return target.unlinkSync(path)
          }
        }
        return value.apply(target, args)
      }
    },
  })
  return fs as unknown as typeof NodeFs
}

function isSymbolicLink(fs: MemoryWorld['fs'], path: string): boolean {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}
