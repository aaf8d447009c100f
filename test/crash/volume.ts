import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect } from 'vitest'
import { parseMountinfo } from '../../src/kernel/mount-table/mountinfo.ts'
import { requireProgram } from '../helpers/needs.ts'
import type { NodeDirectory } from '../helpers/node-directory.ts'
import { listTree, makeTree } from '../helpers/tree.ts'

export const GROUP = 2000

/** All that a restore must give back of one inode, in words: comparing two shows what differs. */
export type Snapshot = Record<string, { mode: string; uid: number; gid: number; attributes: string[] }>

/** Gives the node's volumes and its state a file system each, gone with the node. */
export function mountStorage(node: NodeDirectory, fsType: 'tmpfs' | 'ext4'): void {
  fs.mkdirSync(node.state, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0700', 'state', node.state])
  if (fsType === 'tmpfs') {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'volumes', node.volumes])
    return
  }
  execFileSync('truncate', ['-s', '64M', `${node.top}/image`])
  execFileSync(requireProgram('mkfs.ext4'), ['-q', '-F', `${node.top}/image`])
  execFileSync('mount', ['-o', 'loop', `${node.top}/image`, node.volumes])
}

/** As on a node that never saw modekeep. */
export function wipe(node: NodeDirectory): void {
  for (const { mountPoint } of parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))) {
    if (mountPoint.startsWith(`${node.top}/pods/`)) execFileSync('umount', ['--lazy', mountPoint])
  }
  for (const place of [node.state, node.volumes]) {
    for (const name of fs.readdirSync(place)) fs.rmSync(`${place}/${name}`, { recursive: true })
  }
}

export function setAttribute(path: string, name: string, hex: string): void {
  execFileSync(requireProgram('setfattr'), ['-n', name, '-v', `0x${hex}`, path])
}

/** cap_net_raw, permitted: struct vfs_cap_data, revision 2. */
export const CAPABILITY = '0000000200200000000000000000000000000000'

/** struct posix_acl_xattr: version 2, then tag, permissions, id; here with user 7 and a mask of rwx or r-x. */
const acl = (mask: 7 | 5) =>
  `02000000 01000700ffffffff 0200070007000000 04000500ffffffff 1000${mask === 7 ? '0700' : '0500'}ffffffff 20000000ffffffff`
    .split(' ')
    .join('')

/** Twelve inodes, one of each kind that is owned in its own way; all are root's. */
export function makeVolume(source: string): Snapshot {
  makeTree(fs, source, [
    'file plain 0644',
    'file none 0000 5',
    'file suid 4755',
    'dir sub 0750 7',
    'file sub/sgid 2755 5',
    'file sub/tool 0755',
    'file sub/listed 0640',
    'dir sub/shared 2770 9',
    'file sub/shared/both 6711 6',
    'dir open 1777',
    'link link /',
  ])
  setAttribute(`${source}/sub/tool`, 'security.capability', CAPABILITY)
  setAttribute(`${source}/sub/listed`, 'system.posix_acl_access', acl(5))
  setAttribute(`${source}/sub/shared`, 'system.posix_acl_access', acl(7))
  setAttribute(`${source}/sub/shared`, 'system.posix_acl_default', acl(7))
  return snapshot(source)
}

export function snapshot(root: string): Snapshot {
  const shown: Snapshot = {}
  for (const [path, { mode, gid }] of Object.entries(listTree(fs, root))) {
    shown[path] = { mode, uid: fs.lstatSync(`${root}/${path}`).uid, gid, attributes: [] }
  }
  const text = execFileSync(requireProgram('getfattr'), ['-R', '-h', '-d', '-m', '-', '-e', 'hex', '.'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const block of text.split('\n\n').filter(Boolean)) {
    const [file = '', ...attributes] = block.split('\n').filter(Boolean)
    const inode = shown[file.replace('# file: ', '')]
    if (inode === undefined) throw new Error(`attributes of an inode that is not listed: ${file}`)
    inode.attributes = attributes
  }
  return shown
}

/** Compares two listings; a failure shows the first few inodes that differ. */
export function expectSame(now: Snapshot, wanted: Snapshot): void {
  const differ = [...new Set([...Object.keys(wanted), ...Object.keys(now)])].filter(
    (path) => JSON.stringify(now[path]) !== JSON.stringify(wanted[path]),
  )
  expect(differ.slice(0, 5).map((path) => ({ path, now: now[path], wanted: wanted[path] }))).toEqual([])
}

/** What a walk makes of it: the group on all but links, set-gid on directories, nothing else. */
export function owned(original: Snapshot, root: string): Snapshot {
  return Object.fromEntries(
    Object.entries(original).map(([path, inode]) => {
      const stat = fs.lstatSync(`${root}/${path}`)
      if (stat.isSymbolicLink()) return [path, inode]
      const mode = Number.parseInt(inode.mode, 8) | (stat.isDirectory() ? 0o2000 : 0)
      const { uid, attributes } = inode
      return [path, { mode: mode.toString(8).padStart(4, '0'), uid, gid: GROUP, attributes }]
    }),
  )
}

/**
 * At any moment: permission bits, owners and access lists are the original's; set-id bits and a capability are the
 * original's or, for the moment of a change, taken; the group is the old or the new.
 */
export function expectNothingWidened(now: Snapshot, original: Snapshot, whole: Snapshot): void {
  expect(Object.keys(now)).toEqual(Object.keys(original))
  const wrong = Object.keys(now).filter((path) => {
    const [inode, before, after] = [now[path], original[path], whole[path]]
    return !inode || !before || !after || !isBetween(inode, before, after)
  })
  expect(wrong.map((path) => ({ path, now: now[path], original: original[path] }))).toEqual([])
}

type Inode = Snapshot[string]

function isBetween(inode: Inode, before: Inode, after: Inode): boolean {
  const bits = ({ mode }: Inode) => Number.parseInt(mode, 8)
  const stripped = before.attributes.filter((attribute) => !attribute.startsWith('security.capability='))
  return (
    (bits(inode) & 0o777) === (bits(before) & 0o777) &&
    (bits(inode) & ~bits(after)) === 0 &&
    (inode.gid === before.gid || inode.gid === after.gid) &&
    inode.uid === before.uid &&
    [before.attributes.join(), stripped.join()].includes(inode.attributes.join())
  )
}
