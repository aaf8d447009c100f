import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import type { Case } from './case.ts'
import { control, FSGROUP, look, makeFiles, modes, moved, SIX, SIX_AS_KUBELET_MAKES_THEM, SIX_MODES } from './tree.ts'

const sixFiles: Case = {
  name: 'six files keep modes and ctimes over three kubelet restarts, with a second pod',
  when: 'restarts',
  small: true,
  async run({ node, threeRestarts }) {
    const ours = makeFiles(`${node.volumes}/six`, SIX)
    const theirs = makeFiles(`${node.volumes}/six-naive`, SIX)
    const options = { source: ours, ownership: 'walk' }
    const pods = [
      await node.run({ name: 'six', driver: 'modekeep', options, fsGroup: FSGROUP }),
      await node.run({ name: 'six-naive', driver: 'naive', options: { source: theirs }, fsGroup: FSGROUP }),
    ]
    const [ourFirst, theirFirst] = [look(ours), look(theirs)]
    pods.push(await node.run({ name: 'six-second', driver: 'modekeep', options, fsGroup: FSGROUP }))
    await threeRestarts(...pods)
    const [ourLast, theirLast] = [look(ours), look(theirs)]
    await node.remove(...pods)

    assert.deepEqual(modes(ourFirst), SIX_MODES)
    assert.deepEqual(
      [...ourFirst.values()].map(({ group }) => group),
      Array(7).fill(FSGROUP),
    )
    assert.deepEqual(ourLast, ourFirst, 'something changed after the first mount')
    control('modes', modes(theirLast), SIX_AS_KUBELET_MAKES_THEM)
    control('ctimes that moved', moved(theirFirst, theirLast), node.repeatsMounts ? 7 : 0)
    return {
      modekeep: `${modes(ourLast).join(' ')}, ${moved(ourFirst, ourLast)} ctimes moved`,
      naive: `${modes(theirLast).join(' ')}, ${moved(theirFirst, theirLast)} ctimes moved`,
    }
  },
}

const oneLayer: Case = {
  name: 'one mount at the volume directory after three kubelet restarts',
  when: 'restarts',
  small: true,
  async run({ node, threeRestarts }) {
    const make = async (driver: 'modekeep' | 'naive') => {
      const source = makeFiles(`${node.volumes}/layers-${driver}`, { file: 0o644 })
      return node.run({ name: `layers-${driver}`, driver, options: { source } })
    }
    const [ours, theirs] = [await make('modekeep'), await make('naive')]
    const [before] = ours.layers()
    await threeRestarts(ours, theirs)
    const [ourLayers, theirLayers] = [ours.layers(), theirs.layers()]
    await node.remove(ours, theirs)
    assert.equal(ourLayers.length, 1)
    assert.equal(ourLayers[0]?.id, before?.id, 'it is another mount')
    // Each bind mount upon the last one is propagated to it: their number doubles.
    control('more than one layer', theirLayers.length > 1, node.repeatsMounts)
    return { modekeep: `${ourLayers.length}, the same one`, naive: `${theirLayers.length}` }
  },
}

const tightened: Case = {
  name: 'a file that the pod made 0600 keeps its mode over kubelet restarts',
  when: 'restarts',
  async run({ node, threeRestarts }) {
    const seen: Record<string, string> = {}
    const pods = []
    for (const [driver, options] of [
      ['modekeep', { ownership: 'walk', groupAccess: 'grant' }],
      ['naive', {}],
    ] as const) {
      const source = makeFiles(`${node.volumes}/tight-${driver}`, { secret: 0o640 })
      const wish = { name: `tight-${driver}`, driver, options: { source, ...options }, fsGroup: FSGROUP }
      const pod = await node.run(wish)
      const { code, text } = await pod.exec('chmod 600 /data/secret')
      assert.equal(code, 0, text)
      pods.push(pod)
    }
    await threeRestarts(...pods)
    for (const { wish, mountPoint } of pods) seen[wish.driver] = look(mountPoint).get('secret')?.mode ?? 'gone'
    await node.remove(...pods)
    assert.equal(seen.modekeep, '0600')
    control('mode', seen.naive, node.repeatsMounts ? '0660' : '0600')
    return { modekeep: `${seen.modekeep} (grant)`, naive: `${seen.naive}` }
  },
}

const readOnly: Case = {
  name: 'a read-only volume is not changed, and cannot be written',
  when: 'restarts',
  async run({ node, threeRestarts }) {
    const pods = []
    const before = new Map()
    for (const driver of ['modekeep', 'naive'] as const) {
      const source = makeFiles(`${node.volumes}/ro-${driver}`, { file: 0o600 })
      before.set(driver, look(source))
      const options = driver === 'modekeep' ? { source, ownership: 'walk', groupAccess: 'grant' } : { source }
      pods.push(await node.run({ name: `ro-${driver}`, driver, options, fsGroup: FSGROUP, readOnly: true }))
    }
    await threeRestarts(...pods)
    const [ours, theirs] = pods
    assert(ours && theirs)
    const write = await ours.exec('echo more >>/data/file')
    const onNode = [ours, theirs].map(({ mountPoint }) => writeTo(`${mountPoint}/file`))
    const ourLast = look(`${node.volumes}/ro-modekeep`)
    await node.remove(...pods)
    assert.deepEqual(ourLast, before.get('modekeep'))
    assert.notEqual(write.code, 0)
    assert.match(write.text, /Read-only file system/)
    assert.equal(onNode[0], 'EROFS')
    control('the mount is read-only', onNode[1], 'written')
    return {
      modekeep: `${moved(before.get('modekeep'), ourLast)} ctimes moved; pod: "Read-only file system"; node: ${onNode[0]}`,
      naive: `node: ${onNode[1]}`,
    }
  },
}

/** What comes of a write through the mount, by the node's root. */
function writeTo(path: string): string {
  try {
    fs.appendFileSync(path, 'more')
    return 'written'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

export const RESTARTS = [sixFiles, oneLayer, tightened, readOnly]
