import * as fs from 'node:fs'
import { ON_DISK } from '../../helpers/disks.ts'
import { groups, listTree, makeTree, modes } from '../../helpers/tree.ts'
import { acl, attributes, setAttributes } from '../../real-mounts/attributes.ts'
import { createContext } from './selinux.ts'

const DIRECTORIES = 4
const FILES = 40
const TYPES = ['container_file_t', 'container_ro_file_t', 'container_var_lib_t', 'etc_t', 'user_home_t', 'var_lib_t']
const LEVELS = ['s0', 's0:c1,c2', 's0:c3']
/** cap_net_bind_service, permitted and effective (struct vfs_cap_data). */
const CAPABILITY = '0x0100000200040000000000000000000000000000'
const ACCESS_ACL = acl('u::rw-,u:1000:r--,g::r--,m::rw-,o::---')
const DEFAULT_ACL = acl('u::rwx,g::r-x,g:5:r-x,m::rwx,o::---')

/** Makes files, directories, a link and a second name of several labels, some with an ACL or a file capability. */
export function makeLabelledTree(root: string, types: readonly string[] = TYPES): void {
  const files = Array.from({ length: FILES }, (_, at) => `d${at % DIRECTORIES}/f${at}`)
  const directories = Array.from({ length: DIRECTORIES }, (_, at) => `d${at}`)
  makeTree(fs, root, [
    ...directories.map((directory) => `dir ${directory} 0750 ${ON_DISK}`),
    ...files.map((file, at) => `file ${file} ${at % 7 === 0 ? '4755' : '0640'} ${ON_DISK}`),
    'link d0/link f0',
    'hard d1/hard d0/f0',
  ])
  const paths = [...directories, ...files, 'd0/link', '.']
  setAttributes(
    root,
    Object.fromEntries(
      paths.map((path, at) => [
        path,
        {
          'security.selinux': formatLabel(
            types[at % types.length] ?? '',
            LEVELS[Math.floor(at / types.length) % LEVELS.length] ?? '',
          ),
          ...(files.includes(path) && at % 3 === 0 && { 'system.posix_acl_access': ACCESS_ACL }),
          ...(files.includes(path) && at % 5 === 0 && { 'security.capability': CAPABILITY }),
          ...(directories.includes(path) && { 'system.posix_acl_default': DEFAULT_ACL }),
        },
      ]),
    ),
  )
}

function formatLabel(type: string, level: string): string {
  return `0x${Buffer.from(`${createContext(type, level)}\0`).toString('hex')}`
}

/** What every inode of a tree has. */
export interface TreeState {
  modes: Record<string, string>
  groups: Record<string, number>
  accessAcls: string[]
  /** All other extended attributes: labels, file capabilities, default ACLs. No walk changes them. */
  otherAttributes: string[]
}

export function readTreeState(root: string): TreeState {
  const listed = listTree(fs, root)
  const isAccessAcl = (line: string) => line.startsWith('system.posix_acl_access=')
  let file = ''
  const lines = attributes(root)
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('# file: ')) file = line
      return line.includes('=') ? [{ line, name: `${file}: ${line}` }] : []
    })
  const select = (wanted: boolean) => lines.filter(({ line }) => isAccessAcl(line) === wanted).map(({ name }) => name)
  return { modes: modes(listed), groups: groups(listed), accessAcls: select(true), otherAttributes: select(false) }
}

export function countLabels({ otherAttributes }: TreeState): number {
  const labels = otherAttributes.flatMap((attribute) => attribute.split('security.selinux=').slice(1))
  return new Set(labels).size
}
