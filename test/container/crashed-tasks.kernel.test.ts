import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import { reconcileContainers, releaseContainerClones } from '../../src/container/container-task.ts'
import type { Session } from '../../src/state/session.ts'
import { listTree } from '../helpers/tree.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { CONTAINER, nodeWith, type TestNode } from './node.ts'

const skipped = cannotMount('tmpfs')

class Killed extends Error {}

/** What the kernel does for a process that ended. */
const OF_KERNEL = new Set(['close', 'release'])

/** A session whose process dies in place of its call of this number to the kernel: no later one is made. */
function mortal(session: Session, dieAt: number): { session: Session; hasDied(): boolean } {
  let calls = 0
  const wrapped = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, key) {
        const value = Reflect.get(object, key)
        if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) return wrapped(value)
        if (typeof value !== 'function' || OF_KERNEL.has(String(key))) return value
        return (...args: unknown[]) => {
          if (calls++ >= dieAt) throw new Killed()
          return value.apply(object, args)
        }
      },
    })
  return { session: { ...session, host: wrapped(session.host) }, hasDied: () => calls > dieAt }
}

/** Dies at each call of a job in turn. @returns how many there are */
async function diesAtEach(
  before: (node: TestNode) => Promise<unknown>,
  job: (session: Session, node: TestNode) => Promise<unknown>,
  after: (node: TestNode) => Promise<void>,
): Promise<number> {
  for (let at = 0; ; at++) {
    const node = nodeWith('tmpfs')
    const tree = listTree(fs, node.volume)
    await before(node)
    const { session, hasDied } = mortal(node.session, at)
    await job(session, node).catch((error) => {
      if (!hasDied()) throw error
    })
    await after(node)
    // All effects are undone, and the volume is as before.
    await releaseContainerClones(node.session, CONTAINER, 'gone')
    reconcileContainers(node.session)
    expect({ at, mounted: node.mounted(), left: fs.readdirSync(`${node.top}/state/nri`) }).toEqual({
      at,
      mounted: [],
      left: [],
    })
    expect(listTree(fs, node.volume)).toEqual(tree)
    if (!hasDied()) return at
  }
}

const attach = (session: Session, node: TestNode) =>
  attachContainerClones(session, node.order([node.clone(), node.clone({ destination: '/more', group: 3000 })]))
const nothing = async () => {}

describe.skipIf(skipped !== '')(`a container's task that crashes at any system call${skipped}`, () => {
  it('while attaching clones leaves clones and records that are removed, whether or not the runtime retries the container', async () => {
    expect(await diesAtEach(nothing, attach, nothing)).toBeGreaterThan(40)
  })

  it('while attaching clones does not keep the next attempt from success', async () => {
    await diesAtEach(nothing, attach, async (node) => {
      const { mounts } = await attach(node.session, node)
      expect(mounts.map((one) => one.do === 'replace' && fs.statSync(one.source).gid)).toEqual([2000, 3000])
      expect(node.mounted()).toHaveLength(3)
    })
  })

  it('a lock of a task that crashed without a record is removed by the next connection or gc', async () => {
    const node = nodeWith('tmpfs')
    fs.mkdirSync(`${node.top}/state/nri`, { recursive: true })
    for (const name of [CONTAINER, 'stand']) fs.writeFileSync(`${node.top}/state/nri/${name}.lock`, '')
    expect(reconcileContainers(node.session)).toEqual([])
    expect(fs.readdirSync(`${node.top}/state/nri`)).toEqual([])
  })

  it.each(['started', 'gone'] as const)(
    'while releasing the clones of a %s container is completed by the next release',
    async (as) => {
      const points = await diesAtEach(
        (node) => attach(node.session, node),
        (session) => releaseContainerClones(session, CONTAINER, as),
        async (node) => {
          await releaseContainerClones(node.session, CONTAINER, as)
          expect(node.mounted()).toEqual([node.stagingMount])
        },
      )
      expect(points).toBeGreaterThan(10)
    },
  )
})
