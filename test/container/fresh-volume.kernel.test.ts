import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { basename, dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CloneRequest } from '../../src/container/clone-request.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { describeInode, freshRequest as fresh, freshNode, restoreFresh as restore } from './fresh-node.ts'
import type { TestNode } from './node.ts'

const attach = (node: TestNode, ...clones: CloneRequest[]) => node.attach(node.order(clones))

/** Creates a file as a process whose supplementary group is the pod's. */
function writeAsPod(path: string, group = 2000): void {
  const asUser = ['--reuid', '1000', '--regid', '1000', '--groups', String(group)]
  // Root alone may search the directories above a clone.
  execFileSync('setpriv', [...asUser, 'touch', basename(path)], { cwd: dirname(path) })
}

const volumeRecordsOf = ({ top }: TestNode) =>
  fs.existsSync(`${top}/state/ownership`) ? fs.readdirSync(`${top}/state/ownership`) : []

const KINDS = ['ext4', 'xfs', 'btrfs'].map((fsType) => [fsType, cannotMount(fsType)] as const)

describe.each(KINDS)('a fresh volume on %s%s', (fsType, why) => {
  it.skipIf(why !== '')('gets the group on its root alone, which a restore takes back', async () => {
    const node = freshNode(fsType)
    expect(describeInode(node.source)).toBe('0:0 755')
    const [clone = ''] = await attach(node, fresh(node))
    expect([describeInode(node.source), describeInode(clone)]).toEqual(['0:2000 2775', '0:2000 2775'])
    if (fsType === 'ext4') expect(describeInode(`${node.source}/lost+found`)).toBe('0:0 700')
    expect(execFileSync('findmnt', ['-no', 'VFS-OPTIONS', clone], { encoding: 'utf8' })).not.toContain('idmapped')
    writeAsPod(`${clone}/file`)
    expect(describeInode(`${node.source}/file`)).toBe('1000:2000 644')
    expect(await restore(node)).toBe('restored')
    expect(describeInode(node.source)).toBe('0:0 755')
  })
})

const noExt4 = cannotMount('ext4')

describe.skipIf(noExt4 !== '')(`a volume on ext4${noExt4}`, () => {
  const fill: readonly (readonly [string, (root: string) => void])[] = [
    ['a file', (root) => fs.writeFileSync(`${root}/file`, '')],
    ['a link', (root) => fs.symlinkSync('/', `${root}/link`)],
    ['a file below a directory', (root) => makeFile(`${root}/a/b/file`)],
    ["a user's directory", (root) => makeDirectory(`${root}/a`, 1000, 0)],
    ["another group's directory", (root) => makeDirectory(`${root}/a`, 0, 5)],
    ['65 directories', (root) => Array.from({ length: 65 }, (_, at) => fs.mkdirSync(`${root}/${at}`))],
    ["a user's root", (root) => fs.chownSync(root, 1000, 0)],
    ['a mount', (root) => mountTmpfs(`${root}/a`)],
  ]

  it.each(fill)('with %s is mapped, and nothing on disk changes', async (what, make) => {
    const node = freshNode('ext4')
    make(node.source)
    const before = describeInode(node.source)
    if (what === 'a mount') await expect(attach(node, fresh(node))).rejects.toThrow('has another mount inside')
    else {
      const [clone = ''] = await attach(node, fresh(node))
      expect(fs.statSync(clone).gid).toBe(2000)
    }
    expect([describeInode(node.source), volumeRecordsOf(node)]).toEqual([before, []])
  })

  it('that is mounted read-only in the container is mapped', async () => {
    const node = freshNode('ext4')
    const [clone = ''] = await attach(node, fresh(node, { options: ['rbind', 'ro'] }))
    expect([describeInode(node.source), fs.statSync(clone).gid]).toEqual(['0:0 755', 2000])
  })

  it('gets its first group on disk, and a second group and a read-only mount of the container see theirs', async () => {
    const node = freshNode('ext4')
    const [readOnly = '', first = '', second = ''] = await attach(
      node,
      fresh(node, { destination: '/read', options: ['rbind', 'ro'] }),
      fresh(node),
      fresh(node, { destination: '/logs', group: 3000 }),
    )
    expect([node.source, readOnly, first, second].map((path) => fs.statSync(path).gid)).toEqual([
      2000, 2000, 2000, 3000,
    ])
    writeAsPod(`${second}/log`, 3000)
    expect(fs.statSync(`${first}/log`).gid).toBe(2000)
  })

  it('is mapped for another pod that requests another group at the same time', async () => {
    const node = freshNode('ext4')
    const other = node.order([fresh(node, { group: 3000 })], { container: 'b2' })
    const ended = await Promise.allSettled([attach(node, fresh(node)), node.attach(other)])
    const [first] = ended
    // The one that comes second may be refused, and kubelet tries it again.
    for (const { reason } of ended.filter((one) => one.status === 'rejected'))
      expect(String(reason)).toMatch(/uses .* \(container app\)|being given another group|is being written to/)
    const group = fs.statSync(node.source).gid
    expect([2000, 3000]).toContain(group)
    const clones = [...(await attach(node, fresh(node))), ...(await node.attach(other))]
    expect(clones.map((path) => fs.statSync(path).gid)).toEqual([2000, 3000])
    expect([fs.statSync(node.source).gid, first?.status]).toEqual([group, expect.any(String)])
  })

  it("has the group in the directories that kubelet made for a container's subPaths", async () => {
    const node = freshNode('ext4')
    const clones = ['pgdata/16', 'logs'].map((path, index) => {
      fs.mkdirSync(`${node.source}/${path}`, { recursive: true })
      const source = `${node.pod}/volume-subpaths/data/app/${index}`
      fs.mkdirSync(dirname(source), { recursive: true })
      fs.mkdirSync(source)
      execFileSync('mount', ['--bind', `${node.source}/${path}`, source])
      return fresh(node, { source, destination: `/${path}` })
    })
    const attached = await attach(node, ...clones)
    for (const clone of attached) writeAsPod(`${clone}/file`)
    expect(['', '/pgdata', '/pgdata/16', '/logs'].map((path) => describeInode(node.source + path))).toEqual(
      Array.from({ length: 4 }, () => '0:2000 2775'),
    )
    for (const { source } of clones) execFileSync('umount', [source])
    expect(await restore(node)).toBe('restored')
    expect(['', '/pgdata', '/pgdata/16', '/logs'].map((path) => describeInode(node.source + path))).toEqual(
      Array.from({ length: 4 }, () => '0:0 755'),
    )
  })

  it('whose group on disk would be one of the system is refused where users of the node reach it', async () => {
    const node = freshNode('ext4')
    fs.chmodSync(node.top, 0o755)
    const grants = [{ fsTypes: ['ext4'] }]
    await expect(attach(node, fresh(node, { group: 42, grants }))).rejects.toThrow('42, a group of the system')
    expect([describeInode(node.source), volumeRecordsOf(node), node.records()]).toEqual(['0:0 755', [], []])
  })

  it('that is a copy of another volume is mapped with a warning, as their records cannot be distinguished', async () => {
    const node = freshNode('ext4')
    const copy = `${node.pod}/volumes/kubernetes.io~csi/copy/mount`
    fs.mkdirSync(copy, { recursive: true })
    fs.copyFileSync(`${node.top}/image`, `${node.top}/copy`)
    await attach(node, fresh(node))
    execFileSync('mount', ['-o', 'loop', `${node.top}/copy`, copy])
    const other = node.order([fresh(node, { volume: 'copy', source: copy })], { container: 'b3' })
    const [clone = ''] = await node.attach(other)
    expect([describeInode(copy), fs.statSync(clone).gid]).toEqual(['0:0 755', 2000])
    expect(node.warnings).toEqual([expect.stringContaining('volume "copy" is mapped, although the pod may not write')])
  })

  it('of an emptyDir gets the group with its subPath, and nothing is recorded', async () => {
    const node = freshNode('ext4')
    fs.chmodSync(node.source, 0o777)
    const [clone = ''] = await attach(node, fresh(node, { freshGroup: 'unrecorded', setGid: 'emptyDir' }))
    writeAsPod(`${clone}/file`)
    expect([describeInode(node.source), volumeRecordsOf(node)]).toEqual(['0:2000 2777', []])
  })
})

it.skipIf(cannotMount('tmpfs') !== '')(
  `an emptyDir in memory needs no rule for tmpfs if it is fresh or has the group, and is refused otherwise${cannotMount('tmpfs')}`,
  async () => {
    const node = freshNode('tmpfs')
    const clone = fresh(node, { freshGroup: 'unrecorded', setGid: 'emptyDir', fsTypes: ['ext4'] })
    for (const file of ['first', 'second']) {
      const [, path = ''] = await attach(node, { ...clone, options: ['rbind', 'ro'] }, clone)
      writeAsPod(`${path}/${file}`)
      expect(describeInode(`${node.source}/${file}`)).toBe('1000:2000 644')
    }
    expect(describeInode(node.source)).toBe('0:2000 3777')
    fs.chownSync(node.source, 0, 0)
    await expect(attach(node, clone)).rejects.toThrow('tmpfs')
  },
)

function makeDirectory(path: string, uid: number, gid: number): void {
  fs.mkdirSync(path)
  fs.chownSync(path, uid, gid)
}

function makeFile(path: string): void {
  fs.mkdirSync(dirname(path), { recursive: true })
  fs.writeFileSync(path, '')
}

function mountTmpfs(path: string): void {
  fs.mkdirSync(path)
  execFileSync('mount', ['-t', 'tmpfs', 'test', path])
}
