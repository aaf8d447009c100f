import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import type { CloneRequest, ContainerCloneRequest } from '../../src/container/clone-request.ts'
import { runContainerTask } from '../../src/container/container-task.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { describeInode, freshNode } from './fresh-node.ts'
import { nodeWith, type TestNode } from './node.ts'

const noExt4 = cannotMount('ext4')

const GRANTS = [{ fsTypes: ['ext4'], groupAccess: 'grant' as const, systemGroups: true }]

function nodeWithContent(): TestNode {
  const node = freshNode('ext4')
  fs.writeFileSync(`${node.source}/file`, 'text')
  fs.chmodSync(`${node.source}/file`, 0o600)
  return node
}

const requestGrant = (node: TestNode, over: Partial<CloneRequest> = {}) =>
  node.clone({ groupAccess: 'grant', grants: GRANTS, ...over })

const run = (node: TestNode, task: 'attach' | 'grant', request: ContainerCloneRequest) =>
  runContainerTask(node.session, { do: task, request })

const listInodes = ({ source }: TestNode) => [source, `${source}/file`].map(describeInode)

const afterwards: (() => void)[] = []
afterEach(() => {
  for (const undo of afterwards.splice(0)) undo()
})

describe.skipIf(noExt4 !== '')(`a requested walk of a volume on ext4${noExt4}`, () => {
  it('is not repeated without end after a user has changed the group of the root', async () => {
    const node = nodeWithContent()
    const request = node.order([requestGrant(node)])
    await run(node, 'grant', request)
    fs.chownSync(node.source, 0, 3000)
    expect(await run(node, 'attach', request)).toMatchObject({ isGrantPending: true })
    expect(await run(node, 'grant', request)).toEqual({})
    const [clone = ''] = await node.attach(request)
    expect([fs.statSync(clone).gid, fs.statSync(node.source).gid]).toEqual([2000, 3000])
  })

  it('of a volume with an immutable root is refused with the reason, before it changes a file', async () => {
    const node = nodeWithContent()
    execFileSync('chattr', ['+i', node.source])
    afterwards.push(() => execFileSync('chattr', ['-i', node.source]))
    const { failure } = await run(node, 'grant', node.order([requestGrant(node)]))
    expect([failure, listInodes(node)]).toEqual([expect.stringContaining('immutable'), ['0:0 755', '0:0 600']])
  })

  it('that may have missed a directory is refused with the reason, and the next one continues', async () => {
    const node = nodeWithContent()
    fs.mkdirSync(`${node.source}/a/b`, { recursive: true })
    const { readEntries } = node.session.host.inodes
    const inodes = new Proxy(node.session.host.inodes, {
      get(target, key, receiver) {
        if (key !== 'readEntries') return Reflect.get(target, key, receiver)
        return (...args: Parameters<typeof readEntries>) => {
          const block = readEntries.apply(target, args)
          if (fs.existsSync(`${node.source}/a`)) fs.renameSync(`${node.source}/a`, `${node.source}/lost+found/a`)
          return block
        }
      },
    })
    const { host } = node.session
    node.session.host = { ...host, inodes }
    const request = node.order([requestGrant(node)])
    const { failure } = await run(node, 'grant', request)
    expect(failure).toContain('while directories were moved in it')
    node.session.host = host
    expect(await run(node, 'grant', request)).toEqual({})
    expect(describeInode(`${node.source}/lost+found/a/b`)).toBe('0:2000 2775')
  })

  it('is done for a container whose group is optional, although another volume of it cannot be mapped', async () => {
    const node = nodeWithContent()
    const missing = node.clone({ volume: 'host', source: `${node.top}/missing`, destination: '/host' })
    const request = node.order([missing, requestGrant(node)], { isOptional: true })
    expect(await run(node, 'attach', request)).toMatchObject({ isGrantPending: true })
    expect(await run(node, 'grant', request)).toEqual({})
    expect(await run(node, 'attach', request)).toMatchObject({ mounts: [{ do: 'without' }, { do: 'replace' }] })
  })

  it('needs no rule if the volume has its group from when it was fresh', async () => {
    const node = freshNode('ext4')
    const request = node.order([requestGrant(node, { freshGroup: 'recorded', grants: undefined })])
    await node.attach(request)
    fs.writeFileSync(`${node.source}/file`, '', { mode: 0o600 })
    const { failure } = await run(node, 'attach', request)
    expect([failure, describeInode(`${node.source}/file`)]).toEqual([undefined, '0:2000 600'])
  })

  it('is done for the first group of a container with two groups, and the second is mapped', async () => {
    const node = nodeWithContent()
    const request = node.order([requestGrant(node), requestGrant(node, { destination: '/b', group: 3000 })])
    expect(await run(node, 'grant', request)).toEqual({})
    expect(listInodes(node)).toEqual(['0:2000 2775', '0:2000 660'])
    const [first = '', second = ''] = await node.attach(request)
    expect([first, second].map((clone) => fs.statSync(`${clone}/file`).gid)).toEqual([2000, 3000])
  })

  it('is done once if it waits for a walk for another group', async () => {
    const node = nodeWithContent()
    const requests = [2000, 3000].map((group) =>
      node.order([requestGrant(node, { group })], { container: `b${group}` }),
    )
    const ended = await Promise.all(requests.map((request) => run(node, 'grant', request)))
    expect(ended.flatMap(({ failure }) => failure ?? [])).toEqual([
      expect.stringContaining('volume "data" (at "/data") was walked by another call meanwhile'),
    ])
    expect(fs.statSync(node.source).gid).toBe(ended[0]?.failure === undefined ? 2000 : 3000)
    for (const request of requests)
      expect(await run(node, 'attach', request)).toMatchObject({ mounts: [{ do: 'replace' }] })
  })

  it("is done before a container that reads, so that the pod's next container can write", async () => {
    const node = nodeWithContent()
    const reader = node.order([requestGrant(node, { options: ['rbind', 'ro'] })], { container: 'b1' })
    for (const task of ['attach', 'grant', 'attach'] as const) await run(node, task, reader)
    const writer = node.order([requestGrant(node)])
    for (const task of ['attach', 'grant'] as const) await run(node, task, writer)
    expect(await run(node, 'attach', writer)).toMatchObject({ mounts: [{ do: 'replace' }] })
  })

  it('is refused for a hostPath if the rule that names its other path does not permit it', async () => {
    const node = nodeWith('ext4')
    const directory = `${node.top}/data/team`
    for (const path of [directory, `${node.top}/fs/strict/team`]) fs.mkdirSync(path, { recursive: true })
    fs.writeFileSync(`${node.top}/fs/strict/team/file`, '')
    execFileSync('mount', ['--bind', `${node.top}/fs/strict/team`, directory])
    const rule = { volumes: ['hostPath'], fsTypes: ['ext4'], systemGroups: true }
    const strict = { ...rule, sources: [`${node.top}/fs/strict/*`] }
    const map = [{ ...rule, sources: [`${node.top}/data/*`], groupAccess: 'grant' as const }, strict]
    node.session.config = { ...node.session.config, map }
    const request = node.order([requestGrant(node, { source: directory, volume: directory })])
    const { failure } = await run(node, 'grant', request)
    expect([failure, describeInode(directory)]).toEqual([expect.stringContaining('"groupAccess": "grant"'), '0:0 755'])
  })

  it("is refused for a subPath of a volume that holds modekeep's records", async () => {
    const node = nodeWithContent()
    const stateDir = `${node.source}/modekeep`
    fs.mkdirSync(stateDir)
    node.session.config = { ...node.session.config, stateDir: `${node.top}/fs/modekeep` }
    const part = `${node.pod}/volume-subpaths/data/app/0`
    for (const path of [part, `${node.source}/part`]) fs.mkdirSync(path, { recursive: true })
    execFileSync('mount', ['--bind', `${node.source}/part`, part])
    const { failure } = await run(node, 'grant', node.order([requestGrant(node, { source: part })]))
    expect([failure, listInodes(node)]).toEqual([
      expect.stringContaining("holds modekeep's own records"),
      ['0:0 755', '0:0 600'],
    ])
  })
})

describe.skipIf(noExt4 !== '')(`a root on ext4 in which the group cannot create files${noExt4}`, () => {
  const USER_1000_WRITES = [
    [1, 7, -1],
    [2, 7, 1000],
    [4, 5, -1],
    [16, 7, -1],
    [32, 5, -1],
  ] as const

  it('refuses no container whose user an access control list names', async () => {
    const node = nodeWithContent()
    const acl = Buffer.alloc(4 + USER_1000_WRITES.length * 8)
    acl.writeUInt32LE(2)
    for (const [at, [tag, bits, id]] of USER_1000_WRITES.entries()) {
      acl.writeUInt16LE(tag, 4 + at * 8)
      acl.writeUInt16LE(bits, 6 + at * 8)
      acl.writeInt32LE(id, 8 + at * 8)
    }
    const { inodes } = node.session.host
    const root = inodes.openTrusted(node.source)
    inodes.setAttribute(root, 'system.posix_acl_access', acl)
    inodes.close(root)
    const { failure } = await run(node, 'attach', node.order([node.clone()], { processUid: 1000 }))
    expect(failure).toBeUndefined()
  })

  it('refuses no container if its subPath belongs to another group of its process', async () => {
    const node = nodeWithContent()
    const part = `${node.pod}/volume-subpaths/data/app/0`
    for (const path of [part, `${node.source}/part`]) fs.mkdirSync(path, { recursive: true })
    fs.chownSync(`${node.source}/part`, 0, 3000)
    fs.chmodSync(`${node.source}/part`, 0o2770)
    execFileSync('mount', ['--bind', `${node.source}/part`, part])
    const requestAs = (gid: number) =>
      node.order([node.clone({ source: part })], { processUid: 1000, processGids: [1000, 2000, gid] })
    expect((await run(node, 'attach', requestAs(4000))).failure).toContain('0:3000 2770 on disk')
    expect((await run(node, 'attach', requestAs(3000))).failure).toBeUndefined()
  })
})
