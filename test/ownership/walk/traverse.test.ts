import { expect, it } from 'vitest'
import { type TreeVisitor, traverseTree } from '../../../src/ownership/walk/traverse.ts'
import { makeTree } from '../../helpers/tree.ts'
import { MemoryVolume } from '../volume.ts'

function arrange() {
  const volume = new MemoryVolume()
  const deep = `deep${'/d'.repeat(40)}`
  makeTree(volume.fs, volume.directory, ['file a 0600', `file ${deep}/file 0600`, 'dir empty 0700', 'link l a'])
  const { inodes } = volume.host
  const top = inodes.openLinkFree(volume.directory)
  const stat = inodes.stat(top)
  const expected = ['a', 'empty', 'l', 'deep', `${deep}/file`]
  for (let end = 4; end < deep.length; ) {
    end += 2
    expected.push(deep.slice(0, end))
  }
  const seen: string[] = []
  const left: string[] = []
  const visitor: TreeVisitor = {
    visitEntries({ handle, path }, block) {
      while (block.next()) {
        if ((inodes.statEntry(handle, block.name).mode & 0o170000) === 0o040000) return true
        seen.push(
          [path, block.name]
            .map((part) => Buffer.from(part).toString())
            .filter(Boolean)
            .join('/'),
        )
      }
      return false
    },
    visitDirectory: (_handle, path) => seen.push(Buffer.from(path).toString()),
    skip: (reason, path) => left.push(`${reason}: ${Buffer.from(path).toString()}`),
  }
  return { volume, inodes, stat, visitor, seen, left, expected: expected.sort(), top }
}

it('every inode below the root is visited once, a directory after its contents, and no handle stays open', () => {
  const { volume, inodes, stat, visitor, seen, expected, top } = arrange()
  Array.from(traverseTree(inodes, top, stat, visitor))
  expect([...seen].sort()).toEqual(expected)
  for (const path of seen) {
    const after = seen.slice(seen.indexOf(path) + 1)
    expect(after.filter((other) => other.startsWith(`${path}/`))).toEqual([])
  }
  expect([...volume.world.handles.keys()]).toEqual([top])
})

it('a tree walk yields between entries, and leaves no handle open if the caller stops', () => {
  const { volume, inodes, stat, visitor, seen, left, expected, top } = arrange()
  for (const _ of traverseTree(inodes, top, stat, visitor)) if (seen.length > 10) break
  expect(seen.length).toBeLessThan(expected.length)
  expect(left).toEqual([])
  expect([...volume.world.handles.keys()]).toEqual([top])
})

it('a directory on another device is not entered', () => {
  const { inodes, stat, visitor, seen, left, top } = arrange()
  Array.from(traverseTree(inodes, top, { ...stat, device: -1 }, visitor))
  expect(seen.sort()).toEqual(['a', 'l'])
  expect(left.sort()).toEqual(['sub-mount: deep', 'sub-mount: empty'])
})
