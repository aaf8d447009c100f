import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { makeVolume, mountStorage, owned, type Snapshot, snapshot } from '../crash/volume.ts'
import { cannotInject } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { type Lacking, refuseCalls } from '../helpers/refuse.ts'
import { makeTree } from '../helpers/tree.ts'
import { cannotRun } from './mapped-volume.ts'

const EPERM = 1
const skipReason = cannotRun('')

/** A node with a volume that has an inode of every kind. */
function nodeWithVolume(): { node: BinaryNode; source: string; original: Snapshot } {
  const node = new BinaryNode()
  mountStorage(node, 'tmpfs')
  const source = `${node.volumes}/data`
  return { node, source, original: makeVolume(source) }
}

function options(source: string, more: Record<string, string> = {}): string {
  const group = { 'kubernetes.io/mounterArgs.FsGroup': '2000', ownership: 'walk', restoreOnUnmount: 'true' }
  return JSON.stringify({ ...group, source, ...more })
}

const SUCCESS = { status: 'Success' }

/** One pod's whole life: mount, again, grant, a changed option, unmount. */
async function wholeLife(wrapper: readonly string[]): Promise<void> {
  const { node, source, original } = nodeWithVolume()
  node.wrapper = wrapper
  const directory = node.podDirectory('pod')
  expect(await node.call('mount', directory, options(source))).toMatchObject(SUCCESS)
  expect(snapshot(directory)).toEqual(owned(original, source))
  expect(await node.call('mount', directory, options(source))).toMatchObject(SUCCESS)
  expect(await node.call('mount', directory, options(source, { groupAccess: 'grant' }))).toMatchObject(SUCCESS)
  expect(fs.statSync(`${directory}/plain`)).toMatchObject({ mode: 0o100664, gid: 2000 })
  const readOnly = options(source, { 'kubernetes.io/readwrite': 'ro' })
  expect(await node.call('mount', directory, readOnly)).toMatchObject(SUCCESS)
  expect(node.layers('pod').map((layer) => layer.options.includes('ro'))).toEqual([true])
  expect(await node.call('unmount', directory)).toMatchObject(SUCCESS)
  expect(node.layers('pod')).toEqual([])
  expect(snapshot(source)).toEqual(original)
}

describe.skipIf(skipReason !== '')(`mount, repeat, unmount and restore are the same${skipReason}`, () => {
  it('on a kernel with all features', () => wholeLife([]))

  it.each([
    ['6.12, without listxattrat', ['listxattrat']],
    ['6.8, without FS_IOC_GETFSUUID', ['listxattrat', 'FS_IOC_GETFSUUID']],
    ['6.5, without fchmodat2', ['listxattrat', 'FS_IOC_GETFSUUID', 'fchmodat2']],
    ['6.4, without MOVE_MOUNT_BENEATH', ['listxattrat', 'FS_IOC_GETFSUUID', 'fchmodat2', 'MOVE_MOUNT_BENEATH']],
    ['5.5 with mount_setattr: without openat2', ['openat2']],
  ] as [string, Lacking[]][])('on Linux %s', (_kernel, what) => wholeLife(refuseCalls(what)))

  it('with a filter that returns EPERM for unknown calls', () =>
    wholeLife(refuseCalls(['listxattrat', 'fchmodat2'], EPERM)))

  it.each([
    ['the kernel returns ENOSYS', undefined],
    ['a filter returns EPERM', EPERM],
  ])('with changes by other threads, without fchmodat2: %s', async (_who, errno) => {
    const node = new BinaryNode()
    mountStorage(node, 'tmpfs')
    const source = `${node.volumes}/data`
    makeTree(
      fs,
      source,
      // Of the group already, some have nothing but their permission bits to be changed.
      Array.from({ length: 600 }, (_, index) => `file ${index} 0640 ${index % 3 ? 5 : 2000}`),
    )
    const original = snapshot(source)
    // Younger files are not given to other threads to be opened to the group.
    await new Promise((resolve) => setTimeout(resolve, 1100))
    node.wrapper = refuseCalls(['fchmodat2'], errno)
    const directory = node.podDirectory('pod')
    expect(await node.call('mount', directory, options(source, { groupAccess: 'grant' }))).toMatchObject(SUCCESS)
    for (let index = 0; index < 600; index++) {
      expect(fs.statSync(`${directory}/${index}`)).toMatchObject({ mode: 0o100660, gid: 2000 })
    }
    expect(await node.call('unmount', directory)).toMatchObject(SUCCESS)
    expect(snapshot(source)).toEqual(original)
  })
})

describe.skipIf(skipReason !== '')(`on a kernel that is too old${skipReason}`, () => {
  it.each([
    ['open_tree', {}],
    ['mount_setattr', {}],
    ['fsopen', { source: '', 'kubernetes.io/fsType': 'tmpfs', ownership: 'none', restoreOnUnmount: 'false' }],
  ] as const)('without %s a mount fails, names the feature, and leaves nothing', async (what, more) => {
    const { node, source, original } = nodeWithVolume()
    const directory = node.podDirectory('pod')
    node.wrapper = refuseCalls([what])
    const { status, message } = await node.call('mount', directory, options(source, more))
    expect(status).toBe('Failure')
    expect(message).toContain(`${what} `)
    expect(message).toContain('modekeep needs Linux 5.12 or newer')
    expect(node.layers('pod')).toEqual([])
    expect(fs.readdirSync(directory)).toEqual([])
    expect(node.mountState()).toEqual([])
    expect(snapshot(source)).toEqual(original)
  })

  it.each(['open_tree', 'mount_setattr', 'fsopen'] as const)(
    'without %s a mount can still be unmounted',
    async (what) => {
      const { node, source } = nodeWithVolume()
      const directory = node.podDirectory('pod')
      expect(await node.call('mount', directory, options(source, { restoreOnUnmount: 'false' }))).toMatchObject(SUCCESS)
      node.wrapper = refuseCalls([what])
      expect(await node.call('unmount', directory)).toMatchObject(SUCCESS)
      expect(node.layers('pod')).toEqual([])
      expect(node.mountState()).toEqual([])
    },
  )

  it.each(['open_tree', 'mount_setattr'] as const)(
    'without %s an unmount succeeds with a pending restore, and the next one completes it',
    async (what) => {
      const { node, source, original } = nodeWithVolume()
      const directory = node.podDirectory('pod')
      expect(await node.call('mount', directory, options(source))).toMatchObject(SUCCESS)
      node.wrapper = refuseCalls([what])
      expect(await node.call('unmount', directory)).toMatchObject(SUCCESS)
      expect(node.layers('pod')).toEqual([])
      node.wrapper = []
      expect(await node.call('mount', directory, options(source))).toMatchObject(SUCCESS)
      expect(await node.call('unmount', directory)).toMatchObject(SUCCESS)
      expect(snapshot(source)).toEqual(original)
    },
  )
})

const noTrace = cannotInject && ` (skipped: ${cannotInject})`

describe.skipIf(noTrace !== '')(`a feature that the kernel lacks${noTrace}`, () => {
  it.each([
    ['the kernel returns ENOSYS', undefined],
    ['a filter returns EPERM', EPERM],
  ])('is not tried again if %s', async (_who, errno) => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    // So few are walked by one thread; each has set-user-ID to be given back.
    makeTree(
      fs,
      source,
      Array.from({ length: 40 }, (_, index) => `file ${index} 4755 5`),
    )
    const trace = `${node.top}/trace`
    node.wrapper = ['strace', '-f', '-o', trace, ...refuseCalls(['fchmodat2', 'listxattrat'], errno)]
    expect(await node.call('mount', node.podDirectory('pod'), options(source))).toMatchObject(SUCCESS)
    const calls = fs.readFileSync(trace, 'utf8').split('\n')
    const asked = (name: RegExp) => calls.filter((line) => name.test(line)).length
    expect(asked(/ (fchmodat2|syscall_0x1c4)\(/)).toBe(1)
    expect(asked(/ (listxattrat|syscall_0x1d1)\(/)).toBe(1)
    expect(asked(/ f?chmod(at)?\(.*\/proc\/self\/fd\//)).toBeGreaterThanOrEqual(40)
  })
  it('such as MOVE_MOUNT_BENEATH makes a replacement unmount the old mount first', async () => {
    const { node, source } = nodeWithVolume()
    const directory = node.podDirectory('pod')
    expect(await node.call('mount', directory, options(source))).toMatchObject(SUCCESS)
    const trace = `${node.top}/trace`
    node.wrapper = [
      'strace',
      '-f',
      '-e',
      'trace=move_mount,umount2',
      '-o',
      trace,
      ...refuseCalls(['MOVE_MOUNT_BENEATH']),
    ]
    const readOnly = options(source, { 'kubernetes.io/readwrite': 'ro' })
    expect(await node.call('mount', directory, readOnly)).toMatchObject(SUCCESS)
    const calls = fs.readFileSync(trace, 'utf8').match(/(move_mount|umount2)\(.* = .*/g) ?? []
    expect(calls.map((call) => call.replace(/\(.* = (-?\w+ ?[A-Z]*).*/, ' $1').trim())).toEqual([
      'move_mount -1 EINVAL',
      'umount2 0',
      'move_mount 0',
    ])
    expect(node.layers('pod').map((layer) => layer.options.includes('ro'))).toEqual([true])
  })
})
