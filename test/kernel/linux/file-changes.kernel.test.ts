import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { FileChangeBatch, Handle } from '../../../src/kernel/host.ts'
import { linuxHost } from '../../../src/kernel/linux/index.ts'
import { hasKernelFeature } from '../../helpers/kernel-features.ts'
import { isRoot } from '../../helpers/stage.ts'

const { inodes } = linuxHost
// The size of one batch.
const ROOM = 1200
const BATCH = 700
// Before Linux 6.6 the walk itself changes modes.
const MODE = hasKernelFeature('fchmodat2') ? 0o640 : 0o600

const suiteTitle = `file changes by other threads${isRoot ? '' : ' (skipped: only root gives files to any group; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  function have(size: number): FileChangeBatch {
    const changes = inodes.changes(size) ?? expect.unreachable()
    onTestFinished(() => changes[Symbol.dispose]())
    return changes
  }

  function files(count: number): Handle[] {
    const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-changes-`)
    const handles = Array.from({ length: count }, (_, n) => fs.openSync(`${directory}/${n}`, 'w', 0o600) as Handle)
    onTestFinished(() => {
      inodes.closeAll(handles)
      fs.rmSync(directory, { recursive: true })
    })
    return handles
  }

  const set = (changes: FileChangeBatch, at: number, handle: Handle, group = 7) => {
    const { gid, mode, changed } = inodes.ownership(handle)
    // A successful change closes the handle.
    const copy = inodes.duplicate(handle)
    changes.set(at, { handle: copy, seenGroup: gid, seenMode: mode, changed, needsSameTime: false, group, mode: MODE })
  }

  it.each([1, 31, 32, 240, 241, BATCH])('have a slot and a result each: %i changes', (count) => {
    const changes = have(BATCH)
    const handles = files(count)
    for (let gid = 7; gid < 10; gid++) {
      for (const [at, handle] of handles.entries()) set(changes, at, handle, gid)
      // The file's owner changes it after it was inspected.
      fs.fchownSync(handles[count - 1] as Handle, 0, gid + 100)
      changes.start(count)
      changes.finish()
      const outcomes = handles.map((_, at) => changes.outcome(at))
      expect(outcomes).toEqual(handles.map((_, at) => (at === count - 1 ? 'odd' : 'made')))
      const groups = handles.map((handle) => inodes.ownership(handle).gid)
      expect(groups).toEqual(handles.map((_, at) => (at === count - 1 ? gid + 100 : gid)))
    }
  })

  it('are completed before their job slots are freed', () => {
    const [handle = -1 as Handle] = files(1)
    const changes = inodes.changes(1) ?? expect.unreachable()
    set(changes, 0, handle)
    changes.start(1)
    changes[Symbol.dispose]()
    expect(inodes.ownership(handle)).toMatchObject({ gid: 7, mode: 0o100000 | MODE })
  })

  it('have job slots for several walks, and each slot belongs to one walk', () => {
    const all: FileChangeBatch[] = []
    for (let changes = inodes.changes(BATCH); changes; changes = inodes.changes(BATCH)) all.push(changes)
    expect(all.length).toBeGreaterThanOrEqual(16)
    expect(inodes.changes(1)).toBeUndefined()
    const handles = files(all.length)
    for (const [index, changes] of all.entries()) set(changes, 0, handles[index] as Handle, 100 + index)
    for (const changes of all) changes.start(1)
    for (const changes of all) changes.finish()
    expect(handles.map((handle) => inodes.ownership(handle).gid)).toEqual(all.map((_, index) => 100 + index))
    // A second disposal has no effect.
    for (const changes of [...all, ...all]) changes[Symbol.dispose]()
    for (let place = 0; place < all.length; place++) have(ROOM)
    expect(inodes.changes(1)).toBeUndefined()
  })

  it('get no job slot if too few slots are free', () => {
    expect(inodes.changes(ROOM + 1)).toBeUndefined()
    have(ROOM)
  })
})
