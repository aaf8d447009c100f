import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { listTree, makeTree, modes } from '../helpers/tree.ts'
import { runs, SEED } from '../property/holds.ts'
import { compile } from '../race/compile.ts'
import { buildTrees } from './build.ts'
import { type Counts, compareTrees, NONE, type Sides } from './compare.ts'
import { peer } from './peer.ts'
import { type Seen, seenIn, timeless } from './seen.ts'
import { GROUP, type Tree, trees } from './trees.ts'

/** From when on a ctime is old: only then is a file opened to its group by another thread. */
const LONG_AGO_MS = 1100

const title = `grant compared with kubelet's own walk${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  let kubelet: ReturnType<typeof peer>
  beforeAll(() => {
    kubelet = peer()
  }, 1_800_000)

  /** The same trees twice: kubelet's walk over one, a mount with grant over the other. */
  async function walked(stage: Stage, list: readonly Tree[]): Promise<Sides> {
    const special = compile('differential/special.c')
    const [theirs = '', ours = ''] = ['theirs', 'ours'].map((name) => {
      const [volume, outside] = [`${stage.top}/volumes/${name}`, `${stage.top}/${name}-outside`]
      for (const directory of [volume, outside]) fs.mkdirSync(directory)
      buildTrees(Buffer.from(volume), Buffer.from(outside), list, special)
      return volume
    })
    const seen = (volume: string) => seenIn(Buffer.from(volume), list)
    const before = seen(ours)
    expect(withoutTimes(seen(theirs))).toEqual(withoutTimes(before))
    await new Promise((resolve) => setTimeout(resolve, LONG_AGO_MS))
    kubelet(Buffer.from(theirs), GROUP)
    await stage.mount('a', { source: ours, ...ASKED })
    const { left } = stage.noted.inodes as Pick<Sides, 'left'>
    const [kubelets, modekeeps] = [seen(theirs), seen(ours)]
    await stage.unmount('a')
    return { before, kubelets, modekeeps, left, restored: seen(ours) }
  }

  const ASKED = {
    ownership: 'walk',
    groupAccess: 'grant',
    restoreOnUnmount: 'true',
    'kubernetes.io/mounterArgs.FsGroup': String(GROUP),
  }

  it.each([
    ['tmpfs', 'other threads', 1500],
    ['ext4', 'other threads', 300],
    ['tmpfs', 'the walk itself', 600],
  ] as const)(
    `group access "grant" sets kubelet's modes and groups in random trees, except for documented differences: on %s, changed by %s`,
    async (fsType, by, count) => {
      const stage = kernelStage(fsType)
      onTestFinished(() => stage.close())
      if (by === 'the walk itself') stage.host.inodes = { ...stage.host.inodes, changes: () => undefined }
      const counts: Counts = { ...NONE }
      for (const list of parts(fc.sample(trees, { numRuns: runs(count), seed: SEED + count }))) {
        compareTrees(list, await walked(stage, list), counts)
        for (const place of fs.readdirSync(stage.top).filter((name) => name.endsWith('-outside')))
          fs.rmSync(`${stage.top}/${place}`, { recursive: true })
        for (const volume of fs.readdirSync(`${stage.top}/volumes`))
          fs.rmSync(`${stage.top}/volumes/${volume}`, { recursive: true })
      }
      for (const [what, times] of Object.entries(counts))
        expect({ what, times }).toEqual({ what, times: expect.toSatisfy((n) => n > runs(20)) })
    },
    1_800_000,
  )

  it('group access "grant" changes nothing below a mount inside the volume, although kubelet does', async () => {
    const stage = kernelStage('tmpfs')
    onTestFinished(() => stage.close())
    const { theirs, ours } = volumes(stage, (source) => {
      makeTree(fs, source, ['dir inner 0700', 'file plain 0600'])
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0700', 'inner', `${source}/inner`])
      onTestFinished(() => void execFileSync('umount', [`${source}/inner`]))
      makeTree(fs, `${source}/inner/deep`, ['file f 0600'])
    })
    const before = listTree(fs, `${ours}/inner`)
    kubelet(Buffer.from(theirs), GROUP)
    await stage.mount('a', { source: ours, submounts: 'hide', ...ASKED })
    expect(modes(listTree(fs, theirs))).toMatchObject({ 'inner/deep/f': '0660', plain: '0660' })
    expect(modes(listTree(fs, ours))).toMatchObject({ plain: '0660' })
    expect(listTree(fs, `${ours}/inner`)).toEqual(before)
    await stage.unmount('a')
  })

  it('group access "grant" skips inodes that cannot be changed, like kubelet, and reports the skipped inodes', async () => {
    const stage = kernelStage('ext4')
    onTestFinished(() => stage.close())
    const { theirs, ours } = volumes(stage, (source) => {
      makeTree(fs, source, ['file frozen 0600', 'file growing 0600', 'file plain 0600'])
      for (const [flag, name] of [
        ['i', 'frozen'],
        ['a', 'growing'],
      ] as const) {
        execFileSync(requireProgram('chattr'), [`+${flag}`, `${source}/${name}`])
        onTestFinished(() => void execFileSync(requireProgram('chattr'), [`-${flag}`, `${source}/${name}`]))
      }
    })
    kubelet(Buffer.from(theirs), GROUP)
    await stage.mount('a', { source: ours, ...ASKED })
    const { left } = stage.noted.inodes as Pick<Sides, 'left'>
    const after = { frozen: '0600', growing: '0600', plain: '0660', '.': '2775' }
    expect([modes(listTree(fs, theirs)), modes(listTree(fs, ours))]).toEqual([after, after])
    expect(left).toEqual({ 'immutable or append-only': { count: 2, examples: expect.any(Array) } })
    await stage.unmount('a')
  })

  it('group access "grant" changes nothing for a read-only pod, for which kubelet does not walk either', async () => {
    const stage = kernelStage('tmpfs')
    onTestFinished(() => stage.close())
    const { ours } = volumes(stage, (source) => makeTree(fs, source, ['file plain 0600', 'dir d 0700']))
    const before = listTree(fs, ours)
    await stage.mount('a', { source: ours, ...ASKED, 'kubernetes.io/readwrite': 'ro' })
    expect(listTree(fs, ours)).toEqual(before)
    await stage.unmount('a')
    expect(listTree(fs, ours)).toEqual(before)
  })

  function volumes(stage: Stage, make: (source: string) => void): { theirs: string; ours: string } {
    const [theirs, ours] = [`${stage.top}/volumes/theirs`, `${stage.top}/volumes/ours`]
    for (const source of [theirs, ours]) make(source)
    return { theirs, ours }
  }
})

/** A file system of a test holds so many. */
function parts(list: readonly Tree[]): Tree[][] {
  const LARGEST = 300
  return Array.from({ length: Math.ceil(list.length / LARGEST) }, (_, n) => list.slice(n * LARGEST, (n + 1) * LARGEST))
}

const withoutTimes = (seen: readonly Seen[][]) => seen.map((tree) => tree.map(timeless))
