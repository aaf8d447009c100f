import * as fs from 'node:fs'
import { expect } from 'vitest'
import { ON_DISK } from '../../helpers/disks.ts'
import type { Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'

export const aDirectory = (on: FaultNode) => on.plainMount('a', { mountOptions: 'noexec' })
export const aFile = (on: FaultNode) =>
  on.mountCall('a', { subPath: 'plain', ownership: 'idmap', restoreOnUnmount: 'false' })
export const anImage = (on: FaultNode) => on.plainMount('a', { source: on.image, 'kubernetes.io/fsType': 'ext4' })

export function showsDirectory(on: FaultNode): void {
  on.expectShows('a', on.original)
  expect(on.node.layers('a')[0]?.options).toContain('noexec')
}

export function showsFile(on: FaultNode): void {
  expect(on.node.layers('a')).toHaveLength(1)
  expect(on.shown('a')).toBe('plain')
  expect(fs.statSync(on.node.podDirectory('a')).gid).toBe(2000)
}

export function showsImage(on: FaultNode): void {
  expect(on.node.layers('a')).toHaveLength(1)
  const directory = on.node.podDirectory('a')
  expect(fs.readFileSync(`${directory}/one`, 'utf8')).toBe('content\n')
  expect(fs.statSync(`${directory}/one`).gid).toBe(ON_DISK)
}

/** A mount that shows all or is not there, and then comes, or goes, when it is asked to. */
function mounting(title: string, args: Situation['args'], shows: (on: FaultNode) => void): Situation {
  const again = async (on: FaultNode) => {
    await on.succeed(args(on))
    shows(on)
  }
  return {
    title,
    reader: 'kubelet',
    args,
    sound(on) {
      on.expectUntouched()
      expect([0, 1]).toContain(on.node.layers('a').length)
      if (on.node.layers('a').length === 1) shows(on)
    },
    promised: shows,
    next: [again, async () => {}],
  }
}

export const MOUNT: Situation[] = [
  mounting('mount of a directory', aDirectory, showsDirectory),
  mounting('mount of a file, its group mapped', aFile, showsFile),
  {
    ...mounting('mount of an image', anImage, showsImage),
    before: async (on) => on.putImage(),
  },
]
