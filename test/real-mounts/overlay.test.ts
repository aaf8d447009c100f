import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'
import { applyToDirectory, planDirectory, restoreDirectory, type Walked } from '../helpers/walk.ts'

const skipReason = cannotMountWith()

/** An overlay of a layer on one file system over a layer on another. @param isOne both on one */
function overlay(option: string, isOne = false): Walked {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-overlay-`)
  const mount = (...args: string[]) => {
    execFileSync('mount', args)
    onTestFinished(() => {
      execFileSync('umount', ['-l', args.at(-1) ?? ''])
    })
  }
  const at = (name: string) => `${top}/${name}`
  for (const name of ['below', 'above', 'merged']) fs.mkdirSync(at(name))
  if (isOne) mount('-t', 'tmpfs', '-o', 'mode=0755', 'one', top)
  else for (const name of ['below', 'above']) mount('-t', 'tmpfs', name, at(name))
  makeTree(fs, at('below'), ['file data/d/a 0640 5', 'file data/d/b 4750 5', 'link data/l d/a'])
  makeTree(fs, at('above'), ['file upper/data/d/c 0640 7', 'dir work 0700'])
  fs.mkdirSync(at('merged'), { recursive: true })
  const layers = `lowerdir=${at('below')},upperdir=${at('above')}/upper,workdir=${at('above')}/work`
  mount('-t', 'overlay', 'overlay', '-o', `${layers},${option}`, at('merged'))
  return { directory: `${at('merged')}/data`, journal: `${top}/journal.sqlite` }
}

/** An overlay itself moves the ctime of a directory that is read. */
const now = (walked: Walked) => {
  const listed = listTree(fs, walked.directory)
  return { groups: groups(listed), modes: modes(listed) }
}

describe.skipIf(skipReason !== '')(addSkipReason('a volume on an overlay', skipReason), () => {
  it.each([
    ['whose layers are on one file system', 'xino=off', true],
    ['of several file systems with xino=on', 'xino=on', false],
  ])('%s is walked completely, and restored', async (_what, option, isOne) => {
    const walked = overlay(option, isOne)
    const before = now(walked)
    const { visited, left } = await applyToDirectory(walked, 2000)
    expect({ visited, left }).toEqual({ visited: 6, left: { symlink: { count: 1, examples: ['l'] } } })
    expect(now(walked).groups).toMatchObject({ '.': 2000, d: 2000, 'd/a': 2000, 'd/b': 2000, 'd/c': 2000 })
    await restoreDirectory(walked)
    expect(now(walked)).toEqual(before)
  })

  it('of several file systems with xino=off is refused, as its inode numbers are not stable', async () => {
    const walked = overlay('xino=off')
    const before = now(walked)
    for (const walk of [() => applyToDirectory(walked, 2000), () => planDirectory(walked, 2000)]) {
      await expect(walk()).rejects.toThrow(
        'mount the overlay with xino=on, or have all of its layers on one file system',
      )
      expect(now(walked)).toEqual(before)
    }
    await expect(restoreDirectory(walked)).rejects.toThrow('xino=on')
  })
})
