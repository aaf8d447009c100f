import assert from 'node:assert/strict'
import type { Case } from './case.ts'
import { control, FSGROUP, makeFiles } from './tree.ts'

export const USER = 1000
export const FILES = { shared: 0o660, readable: 0o644, private: 0o600 }
const TRY = 'for f in shared readable private; do (echo x >>/data/$f) 2>/dev/null && echo $f; done; true'

/** The names in FILES that the container's user can write to. */
export async function tried(pod: { exec(script: string): Promise<{ text: string }> }): Promise<string> {
  return (await pod.exec(TRY)).text.split('\n').filter(Boolean).join(' ') || 'nothing'
}

function view(groupAccess: 'keep' | 'grant', expected: string): Case {
  return {
    name: `a pod's user can write the documented files with walk, ${groupAccess}`,
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

export const PODS_VIEW = [view('keep', 'shared'), view('grant', 'shared readable private')]
