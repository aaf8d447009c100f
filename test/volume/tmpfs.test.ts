import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import type { MountRequest } from '../../src/config/mount-request.ts'
import { parseSource } from '../../src/config/source.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { type Handle, type Host, SystemError } from '../../src/kernel/host.ts'
import type { MountContext } from '../../src/volume/kind/kind.ts'
import { tmpfsKind } from '../../src/volume/tmpfs.ts'
import { NO_FS_GROUP } from '../helpers/mount-records.ts'
import { rendered } from '../helpers/rendered.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

function faults(mountOptions: string[], source = '', subPath = undefined) {
  return tmpfsKind.faults(
    { source: parseSource(source), subPath, fsType: 'tmpfs', ownership: 'none', mountOptions, readOnly: false },
    DEFAULT_CONFIG,
  )
}

const REQUEST: MountRequest = {
  directory: '/pods/p/v',
  source: { type: 'none' },
  fsType: 'tmpfs',
  mountOptions: ['size=64m', 'noexec', 'mode=0770'],
  readOnly: false,
  ownership: 'none',
  fsGroup: NO_FS_GROUP,
  restoreOnUnmount: false,
}

function makingOn(host: Host): MountContext {
  return {
    host,
    request: REQUEST,
    source: undefined,
    group: undefined,
    secrets: new Map(),
    stateDir: '/state',
    staging: '',
    timeoutSeconds: 1,
    tmpfsMaxSize: '64m',
    isVolume: () => false,
    warn: () => {},
  }
}

function hostWhoseTreeFails(syscall: string, code: string): Host {
  const host = memoryHost(new MemoryWorld())
  const createTree = (): Handle => {
    throw new SystemError(syscall, code, 'size=64m', 'tmpfs: Bad value')
  }
  return { ...host, mounts: { ...host.mounts, createTree } }
}

describe('a tmpfs', () => {
  it.each([
    ['size=1'],
    ['size=64m'],
    ['size=64M'],
    ['size=65536K'],
    ['nr_inodes=1'],
    ['nr_inodes=10k'],
    ['nr_inodes=10K'],
    ['mode=770'],
    ['mode=0770'],
    ['mode=1777'],
    ['uid=0'],
    ['uid=1000'],
    ['gid=4294967294'],
    ['noexec'],
    ['ro'],
  ])('accepts %s', (option) => {
    expect(faults([option])).toEqual([])
  })

  it.each([
    ['size=67108865', 'may have 64m on'],
    ['size=65m', 'may have 64m on'],
    ['size=999999999999999g', 'may have 64m on'],
    ['nr_inodes=65537', 'may have 65536, one for each KiB of tmpfsMaxSize, on'],
    ['nr_inodes=65k', 'may have 65536, one for each KiB of tmpfsMaxSize, on'],
  ])("with %s is refused, and the message has the node's limit and the key to change", (option, most) => {
    expect(rendered(faults([option]))).toEqual([
      `option "mountOptions" has "${option}", but a tmpfs ${most} this node: use less, or have tmpfsMaxSize ("64m") raised in the node's modekeep configuration`,
    ])
  })

  it.each([
    ['size=0', 'size=64m'],
    ['size=-1', 'size=64m'],
    ['size=64t', 'size=64m'],
    ['size=64 m', 'size=64m'],
    ['size=064m', 'size=64m'],
    ['size=1%', 'size=64m'],
    ['size=100%', 'size=64m'],
    ['size=', 'size=64m'],
    ['size', 'size=64m'],
    ['nr_inodes=0', 'nr_inodes=10k'],
    ['nr_inodes=x', 'nr_inodes=10k'],
    ['mode=8', 'mode=0770'],
    ['mode=999', 'mode=0770'],
    ['mode=00770', 'mode=0770'],
    ['mode=u+w', 'mode=0770'],
    ['uid=root', 'uid=1000'],
    ['uid=-1', 'uid=1000'],
    ['gid=01', 'gid=1000'],
    ['gid=', 'gid=1000'],
  ])('refuses %s and shows a valid value', (option, example) => {
    expect(rendered(faults([option]))).toEqual([`option "mountOptions" has "${option}": write it like ${example}`])
  })

  it.each([['SIZE=64m'], ['huge=always'], ['mpol=bind'], ['swap'], ['context=x']])(
    'refuses %s as unknown',
    (option) => {
      expect(rendered(faults([option]))).toEqual([
        `option "mountOptions" has ["${option}"]: tmpfs takes ro, rw, nosuid, suid, nodev, dev, noexec, exec, relatime, noatime, strictatime, nodiratime, nosymfollow, size, nr_inodes, mode, uid, gid`,
      ])
    },
  )

  it('refuses two sizes, as the kernel would use the last', () => {
    expect(rendered(faults(['size=64m', 'mode=0770', 'size=1m']))).toEqual([
      'option "mountOptions" has size twice: keep one',
    ])
  })

  it.each([[''], ['tmpfs']])('needs no source: %j', (source) => {
    expect(faults([], source)).toEqual([])
  })

  it('refuses a source, as it would show none of it', () => {
    expect(rendered(faults([], '/srv/a'))).toEqual(['option "source" is "/srv/a": a tmpfs has none, leave it out'])
  })

  it('passes its own options to the kernel, and flags to the mount', () => {
    const world = new MemoryWorld()
    const host = memoryHost(world)
    expect(tmpfsKind.openSource).toBeUndefined()
    tmpfsKind.openTree(makingOn(host))
    expect(world.actions).toEqual(['create-tree tmpfs size=64m mode=0770 nr_inodes=65536'])
  })

  it("gets the node's limits if the pod sets none, as the kernel's default is half of the memory", () => {
    const world = new MemoryWorld()
    const making = makingOn(memoryHost(world))
    tmpfsKind.openTree({ ...making, request: { ...REQUEST, mountOptions: [] }, tmpfsMaxSize: '1g' })
    tmpfsKind.openTree({ ...making, request: { ...REQUEST, mountOptions: ['nr_inodes=5', 'size=1m'] } })
    expect(world.actions).toEqual([
      'create-tree tmpfs size=1073741824 nr_inodes=1048576',
      'create-tree tmpfs nr_inodes=5 size=1m',
    ])
  })

  it.each([['EINVAL'], ['EBUSY']])(
    "refuses an option with the kernel's message, if it fails once or twice: %s",
    (code) => {
      const make = () => tmpfsKind.openTree(makingOn(hostWhoseTreeFails('fsconfig', code)))
      expect(make).toThrow(Refusal)
      expect(make).toThrow(
        `the kernel refuses mountOptions "size=64m,noexec,mode=0770": fsconfig size=64m: ${code} (tmpfs: Bad value)`,
      )
    },
  )

  it.each([
    ['fsopen', 'ENODEV'],
    ['fsopen', 'EINVAL'],
    ['fsmount', 'ENOMEM'],
    ['fsmount', 'EINVAL'],
  ])("does not blame the pod's author for an error of the node: %s %s", (syscall, code) => {
    const make = () => tmpfsKind.openTree(makingOn(hostWhoseTreeFails(syscall, code)))
    expect(make).toThrow(SystemError)
    expect(make).toThrow(`${syscall} size=64m: ${code} (tmpfs: Bad value)`)
  })

  it('throws any other error of the kernel unchanged', () => {
    const host = memoryHost(new MemoryWorld())
    const createTree = (): Handle => {
      throw new TypeError('fsconfig')
    }
    const broken = { ...host, mounts: { ...host.mounts, createTree } }
    expect(() => tmpfsKind.openTree(makingOn(broken))).toThrow(TypeError)
  })
})
