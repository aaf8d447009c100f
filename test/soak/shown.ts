import * as fs from 'node:fs'
import { ON_DISK } from '../helpers/disks.ts'
import { listTree } from '../helpers/tree.ts'
import { same } from './odd.ts'
import type { Kind, PodPlan } from './scene.ts'
import type { Volumes } from './volumes.ts'

/** The file that pods write to. */
export const WRITTEN: Readonly<Record<Kind, string>> = {
  keep: 'plain',
  grant: 'plain',
  idmap: 'plain',
  bind: 'plain',
  'sub path': 'd0/f0',
  flip: '',
  tmpfs: 'marker',
  image: 'one',
  fuse: 'plain',
}

/** @throws {Odd} unless a pod's directory shows its volume, whole and with its group */
export function mustShow(directory: string, kind: Kind, { group }: Pick<PodPlan, 'group'>, volumes: Volumes): void {
  switch (kind) {
    case 'keep':
    case 'grant':
    case 'sub path':
    case 'image':
      same(`groups at ${directory}`, groupsBelow(directory), [group])
      break
    case 'idmap':
      same(`group of ${directory}`, fs.statSync(directory).gid, group)
      break
    case 'bind':
      same(`inode at ${directory}`, fs.statSync(directory).ino, fs.statSync(volumes.tree).ino)
      break
    case 'flip':
      same(`content of ${directory}`, /^version \d+\n$/.test(fs.readFileSync(directory, 'utf8')), true)
      break
    case 'tmpfs':
      same(`what ${directory} holds`, fs.readdirSync(directory), ['marker'])
      break
    case 'fuse':
      same(`content of ${directory}`, fs.readFileSync(`${directory}/plain`, 'utf8').startsWith('plain'), true)
      break
  }
}

/** @throws {Odd} unless an image shows the owner that it was made with */
export function mustShowImageAsMade(directory: string): void {
  same(`groups of the image at ${directory}`, groupsBelow(directory), [ON_DISK])
  same(
    `modes of the image at ${directory}`,
    [fs.statSync(directory).mode & 0o7777, mode(directory, 'one')],
    [0o775, 0o664],
  )
}

const mode = (directory: string, name: string) => fs.statSync(`${directory}/${name}`).mode & 0o7777

/** Of all but links, which a walk leaves. */
function groupsBelow(directory: string): number[] {
  const listed = Object.entries(listTree(fs, directory))
  const groups = listed.filter(([path]) => path !== 'link').map(([, { gid }]) => gid)
  return [...new Set(groups)]
}
