import { expect, it } from 'vitest'
import { type PackedFrames, wholeTree } from '../../../src/ownership/walk/frames.ts'
import { type Boundary, traverse, type Visitor } from '../../../src/ownership/walk/traverse.ts'
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
  const visitor: Visitor = {
    entry({ handle, path }, name) {
      const isDirectory = (inodes.statEntry(handle, name).mode & 0o170000) === 0o040000
      if (!isDirectory)
        seen.push([Buffer.from(path).toString(), Buffer.from(name).toString()].filter(Boolean).join('/'))
      return isDirectory
    },
    directory: (_handle, path) => seen.push(Buffer.from(path).toString()),
    left: (reason, path) => left.push(`${reason}: ${Buffer.from(path).toString()}`),
  }
  const start = (): PackedFrames => wholeTree(inodes, top, stat)
  return { volume, inodes, inside: stat as Boundary, visitor, seen, left, expected: expected.sort(), start, top }
}

it('meets every inode below the root once, a directory after what is in it, and leaves no handle open', () => {
  const { volume, inodes, inside, visitor, seen, expected, start, top } = arrange()
  expect(traverse(inodes, start(), inside, visitor)).toBeUndefined()
  expect([...seen].sort()).toEqual(expected)
  for (const path of seen) {
    const after = seen.slice(seen.indexOf(path) + 1)
    expect(after.filter((other) => other.startsWith(`${path}/`))).toEqual([])
  }
  expect([...volume.world.handles.keys()]).toEqual([top])
})

it('goes on where it was stopped, however often', () => {
  const { inodes, inside, visitor, seen, left, expected, start } = arrange()
  let steps = 0
  let rest: PackedFrames | undefined = start()
  while (rest) rest = traverse(inodes, rest, inside, { ...visitor, stops: () => ++steps % 3 === 0 })
  expect([...seen].sort()).toEqual(expected)
  expect(left).toEqual([])
})

it('does not enter what lies on another device', () => {
  const { inodes, inside, visitor, seen, left, start } = arrange()
  traverse(inodes, start(), { ...inside, device: -1 }, visitor)
  expect(seen.sort()).toEqual(['a', 'l'])
  expect(left.sort()).toEqual(['sub-mount: deep', 'sub-mount: empty'])
})
