import * as fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshNode, freshRequest } from '../container/fresh-node.ts'
import { isRoot } from '../helpers/stage.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { peer } from './peer.ts'

const GROUP = 2000
const why = cannotMount('ext4')

describe.skipIf(!isRoot || why !== '')(`a fresh volume compared with kubelet's own walk${why}`, () => {
  let kubelet: ReturnType<typeof peer>
  beforeAll(() => {
    kubelet = peer()
  }, 1_800_000)

  /** Group and mode of each directory of the volume. */
  const describeDirectories = (root: string, paths: readonly string[]) =>
    paths.map((path) => {
      const { gid, mode } = fs.statSync(root + path)
      return `${path} ${gid} ${(mode & 0o7777).toString(8)}`
    })

  it("has kubelet's group and mode on its root; kubelet also changes lost+found", async () => {
    const theirs = freshNode('ext4')
    const ours = freshNode('ext4')
    kubelet(Buffer.from(theirs.source), GROUP)
    await ours.attach(ours.order([freshRequest(ours)]))
    expect(describeDirectories(theirs.source, ['', '/lost+found'])).toEqual([' 2000 2775', '/lost+found 2000 2770'])
    expect(describeDirectories(ours.source, ['', '/lost+found'])).toEqual([' 2000 2775', '/lost+found 0 700'])
  })
})
