import type * as NodeFs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseSource } from '../../src/config/source.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { bindKind } from '../../src/volume/bind.ts'
import { openNodeSource } from '../../src/volume/kind/source-path.ts'
import { rendered } from '../helpers/rendered.ts'
import { makeTree } from '../helpers/tree.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

function faults(source: string, mountOptions: string[] = [], stateDir = DEFAULT_CONFIG.stateDir) {
  return bindKind.faults(
    { source: parseSource(source), fsType: 'bind', ownership: 'none', mountOptions, readOnly: false },
    { ...DEFAULT_CONFIG, stateDir },
  )
}

describe('the source of a bind mount', () => {
  it.each([
    ['a'],
    ['./a'],
    ['/a/'],
    ['//a'],
    ['/a//b'],
    ['/a/./b'],
    ['/a/.'],
    ['/a/../etc'],
    ['/..'],
    ['/a/..'],
    [' /a'],
    ['/a\0/b'],
    ['nfs:/a'],
  ])('%j is refused for its form under any rule', (source) => {
    expect(rendered(faults(source))).toEqual([
      `option "source" is ${JSON.stringify(source)}: write an absolute path without "..", ".", "//" or a trailing slash`,
    ])
  })

  it.each([
    ['/state', '/state'],
    ['/state/mounts', '/state'],
    ['/state/mounts/x', '/state'],
    ['/state/ownership', '/state'],
    ['/state/ownership/fs-2-3/deeper', '/state'],
    ['/var', '/var/lib/modekeep'],
    ['/var/lib', '/var/lib/modekeep'],
    ['/var/lib/modekeep', '/var/lib/modekeep'],
    ['/var/lib/modekeep/mounts', '/var/lib/modekeep'],
    ['/var/lib/modekeep/ownership', '/var/lib/modekeep'],
  ])('%j is refused because it overlaps the state directory %j', (source, stateDir) => {
    expect(rendered(faults(source, [], stateDir))).toEqual([
      `option "source" is ${JSON.stringify(source)}: it holds modekeep's own records, which no pod may see; name another directory`,
    ])
  })

  it.each([
    ['/state/volumes', '/state'],
    ['/state/volumes/x', '/state'],
    ['/state/volumes/ownership', '/state'],
    ['/state/mounts2', '/state'],
    ['/state/mount', '/state'],
    ['/state/ownership.old/x', '/state'],
    ['/state2', '/state'],
    ['/state2/mounts', '/state'],
    ['/stat', '/state'],
    ['/mounts', '/state'],
    ['/var/lib2', '/var/lib/modekeep'],
    ['/var/lib/modekeep/volumes/x', '/var/lib/modekeep'],
  ])('%j is allowed because it does not overlap the state directory %j', (source, stateDir) => {
    expect(faults(source, [], stateDir)).toEqual([])
  })

  it("may by default lie next to the directory of modekeep's records", () => {
    const check = (source: string) =>
      bindKind.faults(
        { source: parseSource(source), fsType: 'bind', ownership: 'none', mountOptions: [], readOnly: false },
        DEFAULT_CONFIG,
      )
    expect(check('/var/lib/modekeep/volumes/x')).toEqual([])
    expect(check('/var/lib/modekeep/ownership/x')).toHaveLength(1)
  })

  it('is never the root directory, which contains everything', () => {
    expect(rendered(faults('/'))).toEqual([
      'option "source" is "/": write an absolute path without "..", ".", "//" or a trailing slash',
    ])
  })

  it('that does not exist is reported with a remedy', () => {
    expect(rendered(faults(''))).toEqual(['option "source" is missing: name the directory of the node to mount'])
  })

  it('is reported together with faults of the mount options', () => {
    expect(faults('/etc/', ['ro=1', 'rw', 'ro'])).toHaveLength(3)
  })
})

describe('the source on the node', () => {
  const world = new MemoryWorld()
  makeTree(world.fs as unknown as typeof NodeFs, '/srv', [
    'dir real/data 0755',
    'file real/file 0644',
    'link link real',
    'link dangling nowhere',
  ])
  const host = memoryHost(world)

  it('is opened if it is a directory reached without a link', () => {
    const { handle, stat } = openNodeSource(host, '/srv/real/data')
    expect(stat.mode).toBe(0o040755)
    expect(host.inodes.pathOf(handle)).toBe('/srv/real/data')
    host.inodes.close(handle)
    expect(world.handles.size).toBe(0)
  })

  const LINK = 'has a symbolic link in its path, which could lead anywhere: write the real path'
  it.each([
    ['/srv/none', 'does not exist on this node: create the directory, or correct the name'],
    ['/srv/none/data', 'does not exist on this node: create the directory, or correct the name'],
    ['/srv/link', LINK],
    ['/srv/link/data', LINK],
    ['/srv/dangling', LINK],
    ['/srv/real/file', 'is not a directory: name one'],
    ['/srv/real/file/x', 'leads through something that is not a directory: correct the name'],
  ])('%s is refused, and every handle is closed', (source, reason) => {
    let thrown: unknown
    try {
      openNodeSource(host, source)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(Refusal)
    expect((thrown as Refusal).message).toBe(`source ${JSON.stringify(source)} ${reason}`)
    expect(world.handles.size).toBe(0)
  })
})
