import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DIRENT_TYPE_DIRECTORY } from '../../src/kernel/dirents.ts'
import { deferHandleClose, type Inodes } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { SELF_ENTRY_NAME } from '../../src/ownership/walk/entry.ts'
import { type TreeVisitor, traverseTree } from '../../src/ownership/walk/traverse.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { addSkipReason, cannotMountWith, requireProgram } from '../helpers/needs.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'
import { applyToDirectory, planDirectory, restoreDirectory, type Walked } from '../helpers/walk.ts'
import { attacked, startRestless } from './restless.ts'

const PATIENCE = 10
// A call that walks nothing has 90 MB of the 256.
const MEMORY = 160 * 2 ** 20
// Two batches of 1,200 inodes, 32 directories and 32 entries, and the process's own.
const HANDLES = 2 * 1200 + 64 + 100
const skipReason = cannotMountWith()
const STILL = Array.from({ length: 400 }, (_, n) => `file d${n % 20}/f${n} 0640 5`)

const WALKS = {
  walk: (walked: Walked) => applyToDirectory(walked, 2000),
  survey: (walked: Walked) => planDirectory(walked, 2000),
  restore: restoreDirectory,
}

/** A volume on a file system of its own, and the duration of a walk while no process changes it. */
async function volumeOn(fsType: 'tmpfs' | 'xfs'): Promise<{ walked: Walked; quiet: number }> {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-restless-`)
  const args =
    fsType === 'tmpfs'
      ? ['-t', 'tmpfs', '-o', 'nr_inodes=0,mode=0755', 'restless', top]
      : ['-o', 'loop', disk(top), top]
  execFileSync('mount', args)
  onTestFinished(() => {
    execFileSync('umount', ['-l', top])
  })
  const directory = `${top}/volume`
  makeTree(fs, directory, STILL)
  const walked = { directory, journal: `${top}/journal.sqlite` }
  await applyToDirectory(walked, 1000)
  const { seconds } = await attacked(() => restoreDirectory(walked))
  await applyToDirectory(walked, 1000)
  return { walked, quiet: seconds }
}

function disk(top: string): string {
  execFileSync('truncate', ['-s', '2G', `${top}.xfs`])
  execFileSync(requireProgram('mkfs.xfs'), ['-q', `${top}.xfs`])
  return `${top}.xfs`
}

/** What was there before the attack. */
const still = (walked: Walked) =>
  Object.fromEntries(Object.entries(groups(listTree(fs, walked.directory))).filter(([path]) => /^d\d+\/f/.test(path)))
const all = (walked: Walked, group: number) =>
  Object.fromEntries(Object.keys(still(walked)).map((path) => [path, group]))

describe.skipIf(skipReason !== '')(addSkipReason('a pod that changes its volume endlessly', skipReason), () => {
  it.each(Object.keys(WALKS) as (keyof typeof WALKS)[])(
    'by nesting directories ever deeper does not keep a %s from ending in normal time',
    async (what) => {
      const { walked, quiet } = await volumeOn('tmpfs')
      {
        await using pod = await startRestless('nest', walked.directory)
        pod.resume()
        const { seconds, memory, handles, refusal } = await attacked(() => WALKS[what](walked))
        expect(pod.isAtIt()).toBe(true)
        expect(refusal).toMatch(/nested more than 16384 deep|changes faster than it can be walked/)
        expectInTime(seconds * 1000, (3 * quiet + PATIENCE) * 1000)
        expect(memory).toBeLessThan(MEMORY)
        expect(handles).toBeLessThan(HANDLES)
      }
      execFileSync('rm', ['-rf', `${walked.directory}/deeper`])
      await applyToDirectory(walked, 3000)
      expect(still(walked)).toEqual(all(walked, 3000))
      await restoreDirectory(walked)
      expect(still(walked)).toEqual(all(walked, 5))
    },
  )

  it('by creating files faster than they are walked makes the walk fail with that reason; the next walk continues after the pod stops', async () => {
    const { walked, quiet } = await volumeOn('xfs')
    {
      await using pod = await startRestless('fill', walked.directory)
      await using second = await startRestless('fill', walked.directory)
      await using third = await startRestless('sow', walked.directory)
      for (const one of [pod, second, third]) one.resume()
      const { seconds, memory, handles, refusal } = await attacked(() => applyToDirectory(walked, 2000))
      expect(pod.isAtIt()).toBe(true)
      // A machine that gives the pod few turns lets the walk come to its end.
      if (refusal)
        expect(refusal).toMatch(/^the volume changes faster than it can be walked: \d+ entries were made or moved/)
      expectInTime(seconds * 1000, (3 * quiet + PATIENCE) * 1000)
      expect(memory).toBeLessThan(MEMORY)
      expect(handles).toBeLessThan(HANDLES)
    }
    execFileSync('find', [
      walked.directory,
      '-mindepth',
      '1',
      '-maxdepth',
      '1',
      '-not',
      '-name',
      'd*',
      '-exec',
      'rm',
      '-rf',
      '{}',
      '+',
    ])
    await applyToDirectory(walked, 3000)
    expect(still(walked)).toEqual(all(walked, 3000))
    await restoreDirectory(walked)
    expect(still(walked)).toEqual(all(walked, 5))
  })

  it('by moving directories into each other does not make a walk enter a directory twice on the way down', async () => {
    const { walked } = await volumeOn('tmpfs')
    const { directory } = walked
    makeTree(fs, directory, ['file c/a/in-a 0640', 'file c/b/in-b 0640'])
    const at = { a: `${directory}/c/a`, b: `${directory}/c/b` }
    const move = (what: 'a' | 'b', to: string) => {
      fs.renameSync(at[what], to)
      at[what] = to
    }
    const met = await step(`${directory}/c`, (entered) => {
      const [here, other] = entered === 'a' ? (['a', 'b'] as const) : (['b', 'a'] as const)
      // It lies in the other one since the last time.
      if (at[here].startsWith(at[other])) move(here, `${directory}/c/${here}`)
      move(other, `${at[here]}/${other}`)
    })
    expect(met.sort()).toEqual(['a', 'b', 'in-a', 'in-b'])
  })

  it('by moving a directory ahead of the walk does not make the walk visit it repeatedly', async () => {
    const { walked } = await volumeOn('tmpfs')
    const { directory } = walked
    const names = Array.from({ length: 50 }, (_, n) => `p${n}`)
    makeTree(fs, directory, ['file c/p0/ball/in-ball 0640', ...names.map((name) => `dir c/${name} 0755`)])
    let at = `${directory}/c/p0/ball`
    const met = await step(`${directory}/c`, (entered) => {
      if (!entered.startsWith('p')) return
      const to = `${directory}/c/${entered}/ball`
      if (to !== at) fs.renameSync(at, to)
      at = to
    })
    expect(met.filter((name) => name === 'in-ball')).toEqual(['in-ball'])
    expect(met.sort()).toEqual(['ball', 'in-ball', ...names].sort())
  })
})

const MOST_STEPS = 1000

/** Walks; after each directory that is entered its user has a turn. @returns the names that were met */
async function step(directory: string, user: (entered: string) => void): Promise<string[]> {
  const met: string[] = []
  let entered: string | undefined
  const inodes: Inodes = {
    ...linuxHost.inodes,
    openDirectory(parent, name) {
      entered = Buffer.from(name).toString()
      return linuxHost.inodes.openDirectory(parent, name)
    },
  }
  const visitor: TreeVisitor = {
    visitEntries(_frame, block) {
      while (block.next()) {
        if (block.type === DIRENT_TYPE_DIRECTORY) return true
        met.push(Buffer.from(block.name).toString())
      }
      return false
    },
    visitDirectory: (_handle, path) => met.push(Buffer.from(path).toString().split('/').at(-1) ?? ''),
    skip: () => undefined,
  }
  const place = inodes.openLinkFree(directory)
  using _place = deferHandleClose(inodes, place)
  const top = linuxHost.inodes.openDirectory(place, SELF_ENTRY_NAME)
  using _top = deferHandleClose(inodes, top)
  let steps = 0
  for (const _ of traverseTree(inodes, top, inodes.stat(top), visitor)) {
    if (++steps > MOST_STEPS) throw new Error(`no end after ${MOST_STEPS} steps: ${met.slice(0, 20)}`)
    if (entered) user(entered)
    entered = undefined
  }
  return met
}
