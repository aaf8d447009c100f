import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { killAtSystemCalls, processesOf, SmallNode } from './each-system-call.ts'
import { PATIENCE } from './volume.ts'

const SUCCESS = { status: 'Success' }
const title = `a call killed at every system call${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(title, () => {
  /** What must hold right after a death, then one of the ways to go on; in the end nothing is left. */
  function checks(on: SmallNode, shown: readonly string[], layers: readonly number[], next: readonly string[][]) {
    return async (turn: number) => {
      expect(processesOf(on.node.top)).toEqual([])
      expect(shown).toContain(on.shown())
      expect(layers).toContain(on.node.layers('a').length)
      const args = next[turn % next.length] ?? []
      expect(await on.node.call(...args)).toEqual(SUCCESS)
      if (args[0] === 'mount') {
        expect(on.node.layers('a')).toHaveLength(1)
        expect(on.shown()).toBe(JSON.parse(args[2] ?? '').source)
        expect(await on.node.call(...on.unmountCall())).toEqual(SUCCESS)
      }
      expect(on.leftovers()).toEqual([])
    }
  }

  it(
    'a mount: nothing is shown or all, and after the next call and its unmount nothing is left',
    async () => {
      const on = new SmallNode()
      const call = on.mountCall()
      const check = checks(on, ['', on.source], [0, 1], [call, on.unmountCall()])
      expect(await killAtSystemCalls('mount', on, call, 4, async () => {}, check)).toBeGreaterThan(20)
    },
    PATIENCE,
  )

  it(
    'a mount of one file by a mapping: nothing is shown or the file, and kubelet gets its directory back',
    async () => {
      const on = new SmallNode()
      const call = on.mountCall({ subPath: 'name', ownership: 'idmap', 'kubernetes.io/fsGroup': '2000' })
      const check = checks(on, ['', on.source], [0, 1], [call, on.unmountCall(), on.mountCall()])
      expect(await killAtSystemCalls('mount of a file', on, call, 4, async () => {}, check)).toBeGreaterThan(20)
    },
    PATIENCE,
  )

  it(
    'a replacement of a directory by a file: one of them is shown or nothing, and the next call ends it',
    async () => {
      const on = new SmallNode()
      const before = async () => void expect(await on.node.call(...on.mountCall())).toEqual(SUCCESS)
      const call = on.mountCall({ subPath: 'name' })
      const check = checks(on, ['', on.source], [0, 1], [call, on.unmountCall(), on.mountCall()])
      expect(await killAtSystemCalls('directory to file', on, call, 4, before, check)).toBeGreaterThan(20)
    },
    PATIENCE,
  )

  it(
    'an unmount: the next unmount or mount finishes it',
    async () => {
      const on = new SmallNode()
      const before = async () => void expect(await on.node.call(...on.mountCall())).toEqual(SUCCESS)
      const check = checks(on, ['', on.source], [0, 1], [on.unmountCall(), on.mountCall()])
      expect(await killAtSystemCalls('unmount', on, on.unmountCall(), 2, before, check)).toBeGreaterThan(20)
    },
    PATIENCE,
  )

  it(
    'a replacement: the old or the new is shown, never nothing',
    async () => {
      const on = new SmallNode()
      const before = async () => void expect(await on.node.call(...on.mountCall())).toEqual(SUCCESS)
      const call = on.mountCall({ source: on.other, mountOptions: 'noexec' })
      const next = [call, on.unmountCall(), on.mountCall()]
      const check = checks(on, [on.source, on.other], [1, 2], next)
      expect(await killAtSystemCalls('replacement', on, call, 4, before, check)).toBeGreaterThan(20)
    },
    PATIENCE,
  )
})
