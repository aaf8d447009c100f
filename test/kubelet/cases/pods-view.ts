import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import type { Case } from './case.ts'
import { control, FSGROUP, look, makeFiles } from './tree.ts'

const USER = 1000
const FILES = { shared: 0o660, readable: 0o644, private: 0o600 }
// What the container's user can write to, and which groups it sees.
const TRY = `for f in shared readable private; do (echo x >>/data/$f) 2>/dev/null && echo $f; done; true`

async function tried(pod: { exec(script: string): Promise<{ text: string }> }): Promise<string> {
  return (await pod.exec(TRY)).text.split('\n').filter(Boolean).join(' ') || 'nothing'
}

function view(groupAccess: 'keep' | 'grant', expected: string): Case {
  return {
    name: `what a pod's user can write to with walk, ${groupAccess}`,
    when: 'together',
    async run({ node }) {
      const wish = { user: USER, fsGroup: FSGROUP }
      const [ours, theirs] = ['modekeep', 'naive'].map((driver) =>
        makeFiles(`${node.volumes}/${groupAccess}-${driver}`, FILES),
      )
      const options = { source: ours ?? '', ownership: 'walk', groupAccess }
      const pods = [
        await node.run({ ...wish, name: `view-${groupAccess}`, driver: 'modekeep', options }),
        await node.run({
          ...wish,
          name: `view-${groupAccess}-naive`,
          driver: 'naive',
          options: { source: theirs ?? '' },
        }),
      ] as const
      const id = (await pods[0].exec('id')).text
      const seen = { modekeep: await tried(pods[0]), naive: await tried(pods[1]) }
      await node.remove(...pods)
      assert.match(id, /uid=1000.*groups=.*\b2000\b/)
      assert.equal(seen.modekeep, expected)
      control('writable', seen.naive, 'shared readable private')
      return seen
    },
  }
}

const idmap: Case = {
  name: 'two pods with two groups use one volume with idmap, and nothing on disk changes',
  when: 'together',
  async run({ node }) {
    const GROUPS = [2000, 3000] as const
    const ON_DISK = 5000
    const sources = ['modekeep', 'naive'].map((driver) => {
      const source = makeFiles(`${node.volumes}/idmap-${driver}`, FILES)
      for (const name of ['.', ...Object.keys(FILES)]) fs.chownSync(`${source}/${name}`, 0, ON_DISK)
      fs.chmodSync(source, 0o2775)
      return source
    })
    const [ours = '', theirs = ''] = sources
    const before = look(ours)
    const pods = []
    for (const group of GROUPS) {
      const wish = { user: USER, fsGroup: group }
      const options = { source: ours, ownership: 'idmap' }
      pods.push(await node.run({ ...wish, name: `idmap-${group}`, driver: 'modekeep', options }))
      pods.push(await node.run({ ...wish, name: `idmap-${group}-naive`, driver: 'naive', options: { source: theirs } }))
    }
    const after = look(ours)
    const seen: Record<string, string[]> = { modekeep: [], naive: [] }
    for (const pod of pods) {
      const group = (await pod.exec('stat -c %g /data/shared')).text
      seen[pod.wish.driver]?.push(`${pod.wish.fsGroup} sees ${group}, writes ${await tried(pod)}`)
    }
    const made = await pods[0]?.exec('echo new >/data/new && stat -c %g /data/new')
    const onDisk = fs.statSync(`${ours}/new`).gid
    await node.remove(...pods)
    assert.deepEqual(after, before, 'something on disk changed')
    assert.deepEqual(
      seen.modekeep,
      GROUPS.map((group) => `${group} sees ${group}, writes shared`),
    )
    assert.equal(made?.text, '2000')
    assert.equal(onDisk, ON_DISK)
    control('the first group', seen.naive?.[0]?.startsWith('2000 sees 3000'), true)
    return { modekeep: seen.modekeep?.join('; ') ?? '', naive: seen.naive?.join('; ') ?? '' }
  },
}

export const PODS_VIEW = [view('keep', 'shared'), view('grant', 'shared readable private'), idmap]
