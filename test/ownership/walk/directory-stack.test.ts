import { beforeEach, describe, expect, it } from 'vitest'
import type { Handle, Inodes } from '../../../src/kernel/host.ts'
import { DirectoryStack, type OpenDirectoryFrame } from '../../../src/ownership/walk/directory-stack.ts'
import { LivelockGuard } from '../../../src/ownership/walk/livelock-guard.ts'
import { makeTree } from '../../helpers/tree.ts'
import { MemoryVolume } from '../volume.ts'

/** Deeper than a walk keeps directories open. */
const DEPTH = 100
const chain = (length: number) => Array.from({ length }, (_, index) => `d${index}`).join('/')

let volume: MemoryVolume
let inodes: Inodes
let top: Handle
beforeEach(() => {
  volume = new MemoryVolume()
  inodes = volume.host.inodes
  const files = [10, 11, 12].map((depth) => `file ${chain(depth)}/z 0600`)
  makeTree(volume.fs, volume.directory, [`file ${chain(DEPTH)}/z 0600`, ...files])
  top = inodes.openLinkFree(volume.directory)
})

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()
const open = () => volume.world.handles.size - 1

/** Walks to the end of the chain. @returns the frames there, and the files that were met on the way */
function descend(frames: DirectoryStack, met: string[]): void {
  for (let frame = frames.top(); frame; ) {
    const block = frames.readBlock(frame)
    if (!block) return
    if (!block.next()) continue
    const name = Uint8Array.from(block.name)
    if (text(name) === 'z') met.push(text(frame.path))
    else {
      const handle = inodes.openDirectory(frame.handle, name)
      frames.push(frame, handle, inodes.stat(handle), name)
      frame = frames.top()
    }
  }
}

/** Back to where it began. @returns what was lost on the way */
function ascend(frames: DirectoryStack, met: string[]): string[] {
  const lost: string[] = []
  while (!frames.isAtBase()) {
    lost.push(...frames.pop().map(text))
    descend(frames, met)
  }
  return lost
}

const FILES = [10, 11, 12, DEPTH].map(chain)

describe('the stack of directories', () => {
  it('the number of open directories does not grow with the depth, and reading resumes in each at its position', () => {
    const met: string[] = []
    const frames = new DirectoryStack(inodes, top, inodes.stat(top), new LivelockGuard())
    descend(frames, met)
    expect(open()).toBe(32)
    expect(ascend(frames, met)).toEqual([])
    expect(met.sort()).toEqual([...FILES].sort())
    frames.close()
    expect(open()).toBe(0)
  })

  it('a directory is found again from the base if ".." leads to another directory', () => {
    const { openDirectory } = inodes
    const met: string[] = []
    const frames = new DirectoryStack(inodes, top, inodes.stat(top), new LivelockGuard())
    descend(frames, met)
    let most = 0
    inodes.openDirectory = (parent, name) => {
      most = Math.max(most, open())
      return openDirectory(text(name) === '..' ? top : parent, text(name) === '..' ? Buffer.from('d0') : name)
    }
    expect(ascend(frames, met)).toEqual([])
    expect(most).toBeLessThanOrEqual(32)
    expect(met.sort()).toEqual([...FILES].sort())
    frames.close()
    expect(open()).toBe(0)
  })

  it('a replaced directory is reported as lost, and the walk continues above it', () => {
    const met: string[] = []
    const frames = new DirectoryStack(inodes, top, inodes.stat(top), new LivelockGuard())
    descend(frames, met)
    const moved = chain(6)
    volume.fs.renameSync(`${volume.directory}/${moved}`, '/elsewhere')
    makeTree(volume.fs, `${volume.directory}/${chain(DEPTH)}`, [])
    const lost = ascend(frames, met)
    expect(lost).toEqual([moved])
    frames.close()
    expect(open()).toBe(0)
  })

  it('a directory is not entered below itself, nor again after it was read and moved', () => {
    const frames = new DirectoryStack(inodes, top, inodes.stat(top), new LivelockGuard())
    const base = frames.top() as OpenDirectoryFrame
    const enter = () => {
      const name = Buffer.from('d0')
      const handle = inodes.openDirectory(base.handle, name)
      const isEntered = frames.push(frames.top() as OpenDirectoryFrame, handle, inodes.stat(handle), name)
      if (!isEntered) inodes.close(handle)
      return isEntered
    }
    expect([enter(), enter()]).toEqual([true, false])
    frames.pop()
    // As if it had been moved just now.
    for (const path of ['', '/d0']) volume.fs.chmodSync(`${volume.directory}${path}`, 0o750)
    expect(enter()).toBe(false)
    frames.close()
    expect(open()).toBe(0)
  })

  it('a directory that lists the same entries repeatedly is refused', () => {
    const frames = new DirectoryStack(inodes, top, inodes.stat(top), new LivelockGuard())
    const bytes = inodes.readEntries(frames.top()?.handle as Handle)
    inodes.readEntries = () => bytes
    const read = () => {
      const frame = frames.top() as OpenDirectoryFrame
      for (let blocks = 0; blocks < 10; blocks++) for (const block = frames.readBlock(frame); block?.next(); );
    }
    expect(read).toThrow('directory "." lists the same entries again and again: repair its file system')
    frames.close()
  })
})
