import { expect } from 'vitest'
import { isLinkedOutside, namedRights } from './build.ts'
import { type Seen, timeless } from './seen.ts'
import { GROUP, type Inode, type Tree } from './trees.ts'

/** The same trees before any walk, after kubelet's, after modekeep's, and after its restore. */
export interface Sides {
  before: Seen[][]
  kubelets: Seen[][]
  modekeeps: Seen[][]
  restored: Seen[][]
  /** Of modekeep's walk: how many inodes it left, by reason. */
  left: Record<string, { count: number }>
}

/** How often each exception of docs/ownership.md came up. */
export type Counts = Record<
  'symlink' | 'device' | 'linked outside' | 'right already' | 'capability' | 'ACL' | 'equal',
  number
>

export const NONE: Readonly<Counts> = {
  symlink: 0,
  device: 0,
  'linked outside': 0,
  'right already': 0,
  capability: 0,
  ACL: 0,
  equal: 0,
}

/** Every inode of every tree is what kubelet makes of it, or exactly what the documented exception says. */
export function compareTrees(list: readonly Tree[], sides: Sides, counts: Counts): void {
  const { before, kubelets, modekeeps, restored, left } = sides
  const earlier = { ...counts }
  for (const [number, tree] of list.entries()) {
    const was = before[number] ?? []
    for (const index of was.keys()) {
      const inode = index === 0 ? undefined : tree[index - 1]
      try {
        compareInode(inode, at(was, index), at(kubelets[number], index), at(modekeeps[number], index), counts)
        expect(timeless(at(restored[number], index))).toEqual(timeless(at(was, index)))
      } catch (error) {
        throw new Error(`inode ${index} of tree ${number}, ${text(tree)}: ${(error as Error).message}`, {
          cause: error,
        })
      }
    }
  }
  expect(left.symlink?.count ?? 0).toBe(counts.symlink - earlier.symlink)
  expect(left.device?.count ?? 0).toBe(counts.device - earlier.device)
  expect(left['linked outside the volume']?.count ?? 0).toBe(counts['linked outside'] - earlier['linked outside'])
  expect(
    Object.keys(left).filter((reason) => !['symlink', 'device', 'linked outside the volume'].includes(reason)),
  ).toEqual([])
}

function at(list: readonly Seen[] | undefined, index: number): Seen {
  const seen = list?.[index]
  if (seen === undefined) throw new Error('not inspected')
  return seen
}

function compareInode(inode: Inode | undefined, was: Seen, theirs: Seen, ours: Seen, counts: Counts): void {
  const kind = inode?.kind ?? 'dir'
  if (kind === 'link') {
    counts.symlink++
    expect(ours).toEqual(was)
    expect(timeless(theirs)).toEqual(timeless(was))
    return
  }
  const mode = was.mode | (kind === 'dir' ? 0o2770 : 0o660)
  // Kubelet's walk of everything: also a device, and a file that belongs to another volume too.
  expect(ownershipOf(theirs)).toEqual({ mode, uid: was.uid, gid: GROUP })
  expect(theirs.capability).toBeUndefined()
  if (kind !== 'device' && was.gid === GROUP && was.mode === mode) {
    counts['right already']++
    expect(ours).toEqual(was)
    return
  }
  const isOutside = inode !== undefined && isLinkedOutside(inode)
  if (kind === 'device' || isOutside) {
    counts[isOutside ? 'linked outside' : 'device']++
    expect(ours).toEqual(was)
    return
  }
  expect(ownershipOf(ours)).toEqual(ownershipOf(theirs))
  expect([ours.modified, ours.links]).toEqual([was.modified, was.links])
  expect(ours.capability).toBe(was.capability)
  if (was.capability !== undefined) counts.capability++
  if (was.acl !== undefined) compareAcls(was.acl, theirs.acl ?? '', ours.acl ?? '', counts)
  if (was.acl === undefined && was.capability === undefined) counts.equal++
}

const ownershipOf = ({ mode, uid, gid }: Seen) => ({ mode, uid, gid })

/** Kubelet's chmod raises the mask, and what the mask let through of a named entry grows; modekeep's stays what it was. */
function compareAcls(was: string, theirs: string, ours: string, counts: Counts): void {
  expect(namedRights(ours)).toEqual(namedRights(was))
  const before = namedRights(was)
  const after = namedRights(theirs)
  for (const [entry, bits] of Object.entries(before)) expect((after[entry] ?? 0) & bits).toBe(bits)
  if (JSON.stringify(after) !== JSON.stringify(before)) counts.ACL++
}

/** A tree that can be read in a failure. */
function text(tree: Tree): string {
  return JSON.stringify(
    tree.map((inode) => ({ ...inode, name: inode.name.toString('latin1'), mode: inode.mode.toString(8) })),
  )
}
