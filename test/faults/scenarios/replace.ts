import { expect } from 'vitest'
import type { Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'
import { aDirectory, aFile, showsDirectory, showsFile } from './mount.ts'

const another = (on: FaultNode) => on.plainMount('a', { source: on.other, mountOptions: 'noexec' })

function showsAnother(on: FaultNode): void {
  expect(on.node.layers('a')).toHaveLength(1)
  expect(on.shown('a')).toBe('other')
}

function goingOn(args: Situation['args'], shows: (on: FaultNode) => void) {
  return async (on: FaultNode) => {
    await on.succeed(args(on))
    shows(on)
  }
}

export const REPLACE: Situation[] = [
  {
    title: 'replacement by another source',
    reader: 'kubelet',
    args: another,
    before: (on) => on.succeed(aDirectory(on)),
    sound(on, { ended, fault, point }) {
      on.expectUntouched()
      // Two are there where a death comes between the new one's coming and the old one's going.
      expect([1, 2]).toContain(on.node.layers('a').length)
      expect(['plain', 'other']).toContain(on.shown('a'))
      if (fault.lasts || !ended.text.includes('"Failure"')) return
      if (point.name === 'umount2') expect(on.shown('a')).toBe('plain')
      else showsDirectory(on)
    },
    promised: showsAnother,
    next: [
      goingOn(another, showsAnother),
      async () => {},
      async (on, { point }) => {
        await on.succeed(aDirectory(on))
        // Where the kernel refused to unmount the old one, the new one stays hidden beneath it until the unmount.
        if (point.name !== 'umount2') showsDirectory(on)
      },
    ],
  },
  {
    title: 'replacement of a directory by a file',
    reader: 'kubelet',
    isHealed: true,
    args: aFile,
    before: (on) => on.succeed(aDirectory(on)),
    sound(on, { ended, fault }) {
      on.expectUntouched()
      expect([0, 1]).toContain(on.node.layers('a').length)
      expect(['', 'plain']).toContain(on.shown('a'))
      if (!fault.lasts && ended.text.includes('"Failure"')) showsDirectory(on)
    },
    promised: showsFile,
    next: [goingOn(aFile, showsFile), async () => {}, goingOn(aDirectory, showsDirectory)],
  },
]
