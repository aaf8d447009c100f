import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readContainerStatuses } from '../../src/cli/node-state/containers.ts'
import type { CloneRequest, ContainerCloneRequest } from '../../src/container/clone-request.ts'
import { releaseContainerClones, runContainerTask } from '../../src/container/container-task.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { describeInode, freshNode, restoreFresh } from './fresh-node.ts'
import type { TestNode } from './node.ts'

const noExt4 = cannotMount('ext4')

const GRANTS = [{ fsTypes: ['ext4'], groupAccess: 'grant' as const }]

/** A volume with a file of root's, as an application leaves it that ran without a group. */
function nodeWithContent(): TestNode {
  const node = freshNode('ext4')
  fs.writeFileSync(`${node.source}/file`, 'text')
  fs.chmodSync(`${node.source}/file`, 0o600)
  return node
}

const listInodes = ({ source }: TestNode) => [source, `${source}/file`].map(describeInode)
const BEFORE = ['0:0 755', '0:0 600']
const GRANTED = ['0:2000 2775', '0:2000 660']

const requestGrant = (node: TestNode, over: Partial<CloneRequest> = {}, more: Partial<ContainerCloneRequest> = {}) =>
  node.order([node.clone({ groupAccess: 'grant', grants: GRANTS, ...over })], more)

const run = (node: TestNode, task: 'attach' | 'grant', request: ContainerCloneRequest) =>
  runContainerTask(node.session, { do: task, request })

const readOnly = { options: ['rbind', 'ro'] }

describe.skipIf(noExt4 !== '')(`a volume with content on ext4${noExt4}`, () => {
  it('is walked once for the annotation, before the first container, and a restore takes that back', async () => {
    const node = nodeWithContent()
    const request = requestGrant(node)
    expect(await run(node, 'attach', request)).toMatchObject({
      isGrantPending: true,
      failure: expect.stringContaining('is being walked on disk for group 2000'),
      faults: [{ code: 'map-grant' }],
    })
    expect([listInodes(node), node.records(), node.mounted()]).toEqual([BEFORE, [], []])
    expect(await run(node, 'grant', request)).toEqual({})
    expect(listInodes(node)).toEqual(GRANTED)
    expect(await run(node, 'grant', request)).toEqual({})
    const [clone = ''] = await node.attach(request)
    expect(describeInode(`${clone}/file`)).toBe('0:2000 660')
    expect(await restoreFresh(node)).toBe('restored')
    expect(listInodes(node)).toEqual(BEFORE)
  })

  it('is mapped for a second group that requests the walk too', async () => {
    const node = nodeWithContent()
    await run(node, 'grant', requestGrant(node))
    const [clone = ''] = await node.attach(requestGrant(node, { group: 3000 }))
    expect([describeInode(`${clone}/file`), listInodes(node)]).toEqual(['0:3000 660', GRANTED])
  })

  it('is not walked again after a pod has made a file that the group cannot read', async () => {
    const node = nodeWithContent()
    await run(node, 'grant', requestGrant(node))
    fs.writeFileSync(`${node.source}/private`, '', { mode: 0o600 })
    await node.attach(requestGrant(node))
    expect(describeInode(`${node.source}/private`)).toBe('0:2000 600')
  })

  it.each([
    ['no rule permits', { grants: [{ fsTypes: ['ext4'] }] }],
    ['only a rule for another file system permits', { grants: [{ fsTypes: ['xfs'], groupAccess: 'grant' as const }] }],
    ['the default rule does not permit', { grants: undefined }],
  ])('is not walked if %s it', async (_, over) => {
    const node = nodeWithContent()
    const request = requestGrant(node, over)
    for (const task of ['attach', 'grant'] as const) {
      const { failure, ...rest } = await run(node, task, request)
      expect([failure, rest]).toEqual([
        expect.stringContaining('"groupAccess": "grant"'),
        expect.not.objectContaining({ isGrantPending: true }),
      ])
    }
    expect(listInodes(node)).toEqual(BEFORE)
  })

  it('is not walked for a group of the system that users of the node reach', async () => {
    const node = nodeWithContent()
    fs.chmodSync(node.top, 0o755)
    const { failure } = await run(node, 'grant', requestGrant(node, { group: 42 }))
    expect([failure, listInodes(node)]).toEqual([expect.stringContaining('42, a group of the system'), BEFORE])
  })

  it('is mapped without a walk for a read-only mount of a container if no rule permits the walk', async () => {
    const node = nodeWithContent()
    const [clone = ''] = await node.attach(requestGrant(node, { ...readOnly, grants: undefined }))
    expect([fs.statSync(clone).gid, listInodes(node)]).toEqual([2000, BEFORE])
  })

  it('is not walked while a container of another pod relies on its group on disk', async () => {
    const node = nodeWithContent()
    const rule = [{ fsTypes: ['ext4'], systemGroups: true, groupAccess: 'grant' as const }]
    const other = node.order([node.clone({ group: 3000 })], { container: 'b2' })
    await node.attach(other)
    const { failure } = await run(node, 'grant', requestGrant(node, { grants: rule }))
    expect([failure, listInodes(node)]).toEqual([expect.stringContaining('uses '), BEFORE])
    await releaseContainerClones(node.session, 'b2', 'gone')
    expect(await run(node, 'grant', requestGrant(node, { grants: rule }))).toEqual({})
    expect(listInodes(node)).toEqual(GRANTED)
  })

  it('is not walked if another volume has replaced it since it was planned', async () => {
    const node = nodeWithContent()
    const other = `${node.top}/other`
    fs.mkdirSync(other)
    fs.writeFileSync(`${other}/file`, '')
    // The second lookup of the source, after the plan, finds another mount there.
    const { openTrusted } = node.session.host.inodes
    let lookups = 0
    node.session.host = {
      ...node.session.host,
      inodes: new Proxy(node.session.host.inodes, {
        get(target, key, receiver) {
          if (key !== 'openTrusted') return Reflect.get(target, key, receiver)
          return (path: string) => {
            if (path === node.kubeletDir && ++lookups === 2) execFileSync('mount', ['--bind', other, node.source])
            return openTrusted.call(target, path)
          }
        },
      }),
    }
    const { failure } = await run(node, 'grant', requestGrant(node))
    execFileSync('umount', [node.source])
    expect([failure, listInodes(node), fs.statSync(other).gid]).toEqual([
      expect.stringContaining('volume "data" (at "/data") is another volume now'),
      BEFORE,
      0,
    ])
  })

  it('whose root the group cannot write is reported by status, with what a walk would change', async () => {
    const node = nodeWithContent()
    await node.attach(node.order([node.clone()]))
    // The runtime has not started the container, which no process shows.
    const [status] = readContainerStatuses(node.session)
    expect(status).toMatchObject({
      state: 'created',
      reason: expect.stringMatching(/^its root is 0:0 0755 on disk.*plan DIR --fsgroup 2000/),
    })
  })

  it('whose root the group can write is not reported by status', async () => {
    const node = nodeWithContent()
    fs.chmodSync(node.source, 0o2775)
    await node.attach(node.order([node.clone()]))
    expect(readContainerStatuses(node.session)).toMatchObject([{ reason: '' }])
  })

  it.each([
    ['is another user', 1000, false, 'is 0:0 0755 on disk, so group 2000 cannot create files in it'],
    ['is another user, and its group is optional', 1000, true, undefined],
    ['is root', 0, false, undefined],
    ['is unknown', undefined, false, undefined],
  ] as const)(
    'whose root the group cannot write refuses a container if its user %s and only then',
    async (_, processUid, isOptional, refusal) => {
      const node = nodeWithContent()
      const { failure } = await run(node, 'attach', node.order([node.clone()], { processUid, isOptional }))
      expect(failure).toEqual(refusal === undefined ? undefined : expect.stringContaining(refusal))
      expect(listInodes(node)).toEqual(BEFORE)
    },
  )

  it.each([
    ['its owner is the user of the container', (root: string) => fs.chownSync(root, 1000, 0), {}],
    ['its group may write', (root: string) => fs.chmodSync(root, 0o775), {}],
    ['the container mounts it read-only', () => {}, readOnly],
  ] as const)('refuses no container if %s', async (_, change, over) => {
    const node = nodeWithContent()
    change(node.source)
    const { failure } = await run(node, 'attach', node.order([node.clone({ ...over })], { processUid: 1000 }))
    expect(failure).toBeUndefined()
  })
})
