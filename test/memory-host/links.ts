import { type Handle, SystemError } from '../../src/kernel/host.ts'
import type { MemoryLocation, MemoryWorld } from './world.ts'

const MAX_LINKS = 40

/** Simulates openat2(2) with RESOLVE_BENEATH. */
export function openBeneath(world: MemoryWorld, root: Handle, path: string): Handle {
  const way: MemoryLocation[] = [world.at(root)]
  const ahead = path.split('/').reverse()
  const fail = (code: string) => new SystemError('openat2', code, path)
  let links = 0
  if (path === '') throw fail('ENOENT')
  if (path.startsWith('/')) throw fail('EXDEV')
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    const here = way.at(-1)
    if (!here) throw fail('EXDEV')
    if (!statLocation(here).isDirectory()) throw fail('ENOTDIR')
    if (name === '' || name === '.') continue
    if (name === '..') {
      way.pop()
      if (way.length === 0) throw fail('EXDEV')
      continue
    }
    const next = world.child(here, name)
    if (statLocation(next).isSymbolicLink()) {
      const target = readTarget(next)
      if (++links > MAX_LINKS) throw fail('ELOOP')
      if (target.startsWith('/')) throw fail('EXDEV')
      ahead.push(...target.split('/').reverse())
    } else way.push(next)
  }
  return world.open(way.at(-1) ?? world.at(root))
}

export function readLink(world: MemoryWorld, handle: Handle): Uint8Array {
  return Buffer.from(readTarget(world.at(handle)))
}

function readTarget({ mount, path }: MemoryLocation): string {
  return String(mount.fileSystem.fs.readlinkSync(path))
}

function statLocation({ mount, path }: MemoryLocation) {
  return mount.fileSystem.fs.lstatSync(path || '/')
}
