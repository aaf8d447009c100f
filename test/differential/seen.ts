import * as fs from 'node:fs'
import { ACCESS_ACL_ATTRIBUTE, CAPABILITY_ATTRIBUTE } from '../../src/ownership/inode/attributes.ts'
import { below, getAttribute, hasAcl, hasCapability, pathsOf } from './build.ts'
import type { Tree } from './trees.ts'

/** The attributes of an inode that a walk could change. */
export interface Seen {
  mode: number
  uid: number
  gid: number
  modified: bigint
  changed: bigint
  links: number
  acl: string | undefined
  capability: string | undefined
}

/** Every inode of every tree, roots first. */
export function seenIn(volume: Buffer, trees: readonly Tree[]): Seen[][] {
  return trees.map((tree, number) =>
    pathsOf(below(volume, String(number)), tree).map((path, index) => {
      const inode = tree[index - 1]
      const stat = fs.lstatSync(path, { bigint: true })
      return {
        mode: Number(stat.mode) & 0o7777,
        uid: Number(stat.uid),
        gid: Number(stat.gid),
        modified: stat.mtimeNs,
        changed: stat.ctimeNs,
        links: Number(stat.nlink),
        acl: inode && hasAcl(inode) ? getAttribute(path, ACCESS_ACL_ATTRIBUTE) : undefined,
        capability: inode && hasCapability(inode) ? getAttribute(path, CAPABILITY_ATTRIBUTE) : undefined,
      }
    }),
  )
}

/** Without times: of two trees that were made one after the other only these can be equal. */
export function timeless({ changed: _, modified: __, ...rest }: Seen) {
  return rest
}
