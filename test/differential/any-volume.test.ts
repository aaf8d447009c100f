import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { CloneRequest } from '../../src/container/clone-request.ts'
import { runContainerTask } from '../../src/container/container-task.ts'
import { describeInode, freshNode, freshRequest } from '../container/fresh-node.ts'
import type { TestNode } from '../container/node.ts'
import { isRoot } from '../helpers/stage.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { peer } from './peer.ts'

const GROUP = 2000
const why = cannotMount('ext4')

/** Tries each access of a pod: user 1000, primary group 1000, and the pod's group as a supplementary one. */
const TRIAL = `
  cat file >/dev/null 2>&1 && echo reads
  true 2>/dev/null >>file && echo writes
  true 2>/dev/null >new && echo creates $(stat -c %g new)
  true`

/** @returns what a pod with the group can do in a directory with `file` */
function tryAsPod(directory: string, group = GROUP): string {
  const asPod = ['--reuid', '1000', '--regid', '1000', '--groups', String(group)]
  const result = execFileSync('setpriv', [...asPod, 'sh', '-c', TRIAL], { cwd: directory, encoding: 'utf8' })
  return result.trim().split('\n').join(', ') || 'nothing'
}

type Owner = readonly [uid: number, gid: number, mode: number]

/** Gives a volume its root and one file. */
function fill({ source }: TestNode, root: Owner, file: Owner, directory = source): void {
  fs.mkdirSync(directory, { recursive: true })
  fs.writeFileSync(`${directory}/file`, 'text')
  for (const [path, [uid, gid, mode]] of [
    [source, root],
    [directory, root],
    [`${directory}/file`, file],
  ] as const) {
    fs.chownSync(path, uid, gid)
    fs.chmodSync(path, mode)
  }
}

/** A row of the table in docs/any-volume.md: what a pod can do after kubelet's walk, and through a mapping. */
const ROWS: readonly (readonly [title: string, root: Owner, file: Owner, kubelet: string, mapping: string])[] = [
  [
    'with root:root 0775 and a file 0664',
    [0, 0, 0o775],
    [0, 0, 0o664],
    'reads, writes, creates 2000',
    'reads, writes, creates 1000',
  ],
  ['with a closed root', [0, 0, 0o755], [0, 0, 0o664], 'reads, writes, creates 2000', 'reads, writes'],
  ['with a file 0600', [0, 1500, 0o2775], [0, 1500, 0o600], 'reads, writes, creates 2000', 'creates 2000'],
  [
    'of another group, with set-gid',
    [0, 1500, 0o2770],
    [0, 1500, 0o660],
    'reads, writes, creates 2000',
    'reads, writes, creates 2000',
  ],
  [
    'with a file of root that the group may not write',
    [0, 1500, 0o2775],
    [0, 0, 0o644],
    'reads, writes, creates 2000',
    'reads, creates 2000',
  ],
  [
    "with a file of another group than the root's",
    [0, 1500, 0o2775],
    [0, 1600, 0o660],
    'reads, writes, creates 2000',
    'creates 2000',
  ],
]

describe.skipIf(!isRoot || why !== '')(`a volume compared with kubelet's own walk${why}`, () => {
  let kubelet: ReturnType<typeof peer>
  beforeAll(() => {
    kubelet = peer()
  }, 1_800_000)

  const walk = ({ source }: TestNode, group = GROUP) => void kubelet(Buffer.from(source), group)

  async function map(node: TestNode, over: Partial<CloneRequest> = {}, container = 'c0'): Promise<string> {
    const [clone = ''] = await node.attach(node.order([freshRequest(node, over)], { container }))
    return clone
  }

  it('that is fresh has its group and mode on its root; kubelet also changes lost+found', async () => {
    const [theirs, ours] = [freshNode('ext4'), freshNode('ext4')]
    walk(theirs)
    const clone = await map(ours)
    const describeBoth = ({ source }: TestNode) => [source, `${source}/lost+found`].map(describeInode)
    expect(describeBoth(theirs)).toEqual(['0:2000 2775', '0:2000 2770'])
    expect(describeBoth(ours)).toEqual(['0:2000 2775', '0:0 700'])
    expect([tryAsPod(theirs.source), tryAsPod(clone)]).toEqual(['writes, creates 2000', 'writes, creates 2000'])
  })

  it.each(ROWS)('%s gives a pod the access that the page says', async (_, root, file, byWalk, byMapping) => {
    const [theirs, ours] = [freshNode('ext4'), freshNode('ext4')]
    for (const node of [theirs, ours]) fill(node, root, file)
    const before = [ours.source, `${ours.source}/file`].map(describeInode)
    walk(theirs)
    const clone = await map(ours)
    expect([tryAsPod(theirs.source), tryAsPod(clone)]).toEqual([byWalk, byMapping])
    expect([ours.source, `${ours.source}/file`].map(describeInode)).toEqual(before)
  })

  it('with a subPath gives a pod the same access there', async () => {
    const nodes = [freshNode('ext4'), freshNode('ext4')] as const
    const [theirs, ours] = nodes
    for (const node of nodes) fill(node, [0, 1500, 0o2770], [0, 1500, 0o660], `${node.source}/part`)
    const subPath = `${ours.pod}/volume-subpaths/data/app/0`
    fs.mkdirSync(dirname(subPath), { recursive: true })
    fs.mkdirSync(subPath)
    execFileSync('mount', ['--bind', `${ours.source}/part`, subPath])
    walk(theirs)
    const seen = [tryAsPod(`${theirs.source}/part`), tryAsPod(await map(ours, { source: subPath }))]
    execFileSync('umount', [subPath])
    expect(seen).toEqual(Array(2).fill('reads, writes, creates 2000'))
  })

  it('of two pods with a group each: the last walk takes the files from the first pod, and a mapping does not', async () => {
    const [theirs, ours] = [freshNode('ext4'), freshNode('ext4')]
    for (const node of [theirs, ours]) fill(node, [0, 1500, 0o2770], [0, 1500, 0o660])
    for (const group of [GROUP, 3000]) walk(theirs, group)
    const clones = [await map(ours), await map(ours, { group: 3000 }, 'c1')]
    expect([GROUP, 3000].map((group) => tryAsPod(theirs.source, group))).toEqual([
      'nothing',
      'reads, writes, creates 3000',
    ])
    expect(clones.map((clone, at) => tryAsPod(clone, [GROUP, 3000][at]))).toEqual([
      'reads, writes, creates 2000',
      'reads, writes, creates 3000',
    ])
  })

  it('that is mounted read-only, which kubelet does not walk, shows its group', async () => {
    const ours = freshNode('ext4')
    fill(ours, [0, 1500, 0o2770], [0, 1500, 0o660])
    expect(tryAsPod(await map(ours, { options: ['rbind', 'ro'] }))).toBe('reads')
  })

  it('that is walked for the annotation modekeep/group-access gives the access of that walk', async () => {
    const ours = freshNode('ext4')
    fill(ours, [0, 0, 0o755], [0, 0, 0o600])
    const grants = [{ fsTypes: ['ext4'], groupAccess: 'grant' as const }]
    const request = ours.order([freshRequest(ours, { groupAccess: 'grant', grants })])
    const { failure } = await runContainerTask(ours.session, { do: 'grant', request })
    expect(failure).toBeUndefined()
    expect(tryAsPod(await map(ours, { groupAccess: 'grant', grants }))).toBe('reads, writes, creates 2000')
  })
})
