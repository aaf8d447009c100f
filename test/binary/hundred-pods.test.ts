import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

const PODS = Array.from({ length: sized(20, 100) }, (_, n) => `pod-${n}`)
const WALK = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
const title = `${PODS.length} pods at once${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

const CASES: readonly { name: string; source: (pod: string) => string; options: Record<string, string> }[] = [
  { name: 'with one source', source: () => 'data', options: {} },
  { name: 'with a source each', source: (pod) => pod, options: {} },
  { name: 'with one source and one group that a walk applies', source: () => 'data', options: WALK },
]

describe.skipIf(!isRoot)(title, () => {
  it.each(CASES)(
    'many concurrent pods $name are all mounted, then all unmounted, and nothing remains',
    async ({ source, options }) => {
      const node = new BinaryNode()
      const sourceOf = (pod: string) => `${node.volumes}/${source(pod)}`
      const sources = [...new Set(PODS.map(sourceOf))]
      for (const path of sources) {
        makeTree(
          fs,
          path,
          Array.from({ length: 20 }, (_, n) => `file d${n % 3}/f${n} 0640`),
        )
      }
      const all = (call: (pod: string) => string[]) => Promise.all(PODS.map((pod) => node.call(...call(pod))))
      const success = PODS.map(() => ({ status: 'Success' }))

      const asked = (pod: string) => JSON.stringify({ source: sourceOf(pod), ...options })
      expect(await all((pod) => ['mount', node.podDirectory(pod), asked(pod)])).toEqual(success)
      for (const pod of PODS) {
        expect(node.layers(pod)).toHaveLength(1)
        expect(fs.statSync(node.podDirectory(pod)).ino).toBe(fs.statSync(sourceOf(pod)).ino)
      }
      expect(node.mountState()).toHaveLength(PODS.length)
      const walks = node.logLines().filter(({ inodes }) => inodes !== undefined)
      expect(walks).toHaveLength(options === WALK ? sources.length : 0)
      const given = new Set(sources.flatMap((path) => Object.values(groups(listTree(fs, path)))))
      expect(given).toEqual(new Set([options === WALK ? 2000 : 0]))

      expect(await all((pod) => ['unmount', node.podDirectory(pod)])).toEqual(success)
      for (const pod of PODS) expect(node.layers(pod)).toEqual([])
      expect(node.mountState()).toEqual([])
      expect(node.logLines().filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
    },
  )
})
