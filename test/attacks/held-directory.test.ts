import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { CsiNode } from '../frontends/csi/node.ts'
import { makeVolume, NriNode, replaced } from '../frontends/nri/node.ts'
import { memoryOfWorkers } from '../frontends/nri/stuck-workers.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { readProcessState } from '../helpers/hanging.ts'
import { compileHolder, finishWithin, lockDirectory } from '../helpers/held-directory.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe('cc')
const SUCCESS = { status: 'Success' }
const GROUP = 2000
const WALKED = { ownership: 'walk', 'kubernetes.io/fsGroup': String(GROUP), fsGroupChangePolicy: 'Always' }
/** Seconds, of helperTimeoutSeconds. */
const PATIENCE = 8
/** Seconds, also on a busy machine; a call that waits for the directory never ends. */
const IN_TIME = PATIENCE + 12
/** Seconds: a call that knows of the locked directory does not wait for the full time. */
const AT_ONCE = PATIENCE - 2
const GIVEN_UP = /process \d+, which worked on the volume, was given up after 8 s/
const NAMED = /process \d+/

describe.skipIf(skipReason !== '')(
  addSkipReason('a directory that a process of a pod keeps locked', skipReason),
  () => {
    let holder: string
    let node: FuseNode
    let volume: string
    let asked: Record<string, string>
    beforeEach((context) => {
      holder = compileHolder(context)
      node = new FuseNode([])
      node.configure({ helperTimeoutSeconds: PATIENCE })
      volume = `${node.volumes}/data`
      makeVolume(volume)
      asked = { ...WALKED, source: volume, restoreOnUnmount: 'true' }
    })

    function makeVolume(path: string) {
      fs.mkdirSync(`${path}/d`, { recursive: true })
      for (const name of ['a', 'b', 'd/c']) fs.writeFileSync(`${path}/${name}`, '')
    }

    const groups = () => ['.', 'a', 'b', 'd', 'd/c'].map((name) => fs.statSync(`${volume}/${name}`).gid)

    it('a mount fails within its deadline, a second pod is refused at once with the process, and other volumes are not delayed', async () => {
      const other = `${node.volumes}/other`
      makeVolume(other)
      const release = await lockDirectory(holder, `${volume}/d`)
      const first = finishWithin(IN_TIME, () => node.mount('a', asked))
      await new Promise((done) => setTimeout(done, 1500))
      // While the first call still waits, and after it was given up.
      const second = await finishWithin(AT_ONCE, () => node.mount('b', asked))
      expect(second).toEqual({ status: 'Failure', message: expect.stringMatching(NAMED) })
      expect(await finishWithin(AT_ONCE, () => node.mount('c', { ...asked, source: other }))).toEqual(SUCCESS)
      expect(await first).toEqual({ status: 'Failure', message: expect.stringMatching(GIVEN_UP) })
      const third = await finishWithin(AT_ONCE, () => node.mount('b', asked))
      expect(third).toEqual({ status: 'Failure', message: expect.stringMatching(NAMED) })
      for (const pod of ['a', 'b', 'c']) expect(await finishWithin(AT_ONCE, () => node.unmount(pod))).toEqual(SUCCESS)
      await release()
      expect(await node.mount('a', asked)).toEqual(SUCCESS)
      expect(groups()).toEqual([GROUP, GROUP, GROUP, GROUP, GROUP])
      expect(await node.unmount('a')).toEqual(SUCCESS)
      expect(groups()).toEqual([0, 0, 0, 0, 0])
      expect(node.mountState()).toEqual([])
      expect(fs.existsSync(`${node.state}/ownership`)).toBe(false)
    })

    it('an unmount succeeds within its deadline, and the next one restores the volume', async () => {
      expect(await node.mount('a', asked)).toEqual(SUCCESS)
      const release = await lockDirectory(holder, `${volume}/d`)
      expect(await finishWithin(IN_TIME, () => node.unmount('a'))).toEqual(SUCCESS)
      expect(node.layers('a')).toEqual([])
      expect(JSON.stringify(node.logLines())).toMatch(
        /volume not restored, tried again at its next unmount: process \d+/,
      )
      await release()
      expect(await node.mount('b', asked)).toEqual(SUCCESS)
      expect(await node.unmount('b')).toEqual(SUCCESS)
      expect(groups()).toEqual([0, 0, 0, 0, 0])
    })

    it('apply, restore, plan and heal end within their deadlines', async () => {
      expect(await node.mount('a', { ...asked, restoreOnUnmount: 'false' })).toEqual(SUCCESS)
      expect(await node.unmount('a')).toEqual(SUCCESS)
      const release = await lockDirectory(holder, `${volume}/d`)
      const byHand = (...args: string[]) => node.byHand<{ error?: string; outcome?: string }>(...args)
      const given = /the walk of .* was given up: process \d+/
      expect((await finishWithin(IN_TIME, () => byHand('restore', volume))).error).toMatch(given)
      const apply = () => byHand('apply', volume, '--fsgroup', '3000', '--fs-group-change-policy', 'Always')
      expect((await finishWithin(AT_ONCE, apply)).error).toMatch(given)
      // A survey only reads, and the kernel permits that while no process waits for the lock.
      expect((await finishWithin(IN_TIME, () => byHand('plan', volume, '--fsgroup', '3000'))).error ?? '').toMatch(
        /^$|given up/,
      )
      expect((await finishWithin(IN_TIME, () => byHand('restore', '--dry-run', volume))).error ?? '').toMatch(
        /^$|given up/,
      )
      await finishWithin(IN_TIME, () => node.heal())
      await finishWithin(IN_TIME, () => node.byHand('status'))
      await release()
      expect(byHand('restore', volume).outcome).toBe('restored')
      expect(groups()).toEqual([0, 0, 0, 0, 0])
    })
  },
)

describe.skipIf(skipReason !== '')(
  addSkipReason('a directory that is kept locked, for a CSI publication', skipReason),
  () => {
    it('the publication fails within its deadline and names the process, and the pod can be deleted', async (context) => {
      const holder = compileHolder(context)
      const node = new CsiNode()
      onTestFinished(() => node.end())
      node.configure({ helperTimeoutSeconds: PATIENCE })
      await node.serve()
      const source = node.volume('data', 3)
      const release = await lockDirectory(holder, source)
      const attributes = { ownership: 'walk' }
      const group = String(GROUP)
      const began = performance.now()
      expect(JSON.stringify(await node.publish(1, source, { attributes, group }))).toMatch(GIVEN_UP)
      expectInTime(performance.now() - began, IN_TIME * 1000)
      const again = performance.now()
      expect(JSON.stringify(await node.publish(2, source, { attributes, group }))).toMatch(NAMED)
      expect(await node.unpublish(1)).toMatchObject({ code: 'OK' })
      expectInTime(performance.now() - again, AT_ONCE * 1000)
      await release()
      expect(await node.publish(2, source, { attributes, group })).toMatchObject({ code: 'OK' })
      expect(fs.statSync(source).gid).toBe(GROUP)
      expect(await node.unpublish(2)).toMatchObject({ code: 'OK' })
    })
  },
)

const cannotMap = cannotServe('cc', 'mkfs.ext4', 'flock')

describe.skipIf(cannotMap !== '')(
  addSkipReason('a directory that is kept locked, for the NRI plugin', cannotMap),
  () => {
    const SET_GID = 0o2000
    const ASKS = { 'modekeep/group': String(GROUP), 'modekeep/set-gid': 'root' }
    const hasBit = (directory: string) => (fs.statSync(directory).mode & SET_GID) !== 0

    it("a container is refused within its deadline, its worker keeps the volume's lock until it ends, and other volumes are mapped", async (context) => {
      const holder = compileHolder(context)
      const node = new NriNode()
      onTestFinished(() => node.end())
      node.configure({ map: [{ setGid: 'root' }] })
      const volume = makeVolume(node, 1)
      const other = `${node.top}/fs/other`
      fs.mkdirSync(other, { mode: 0o770 })
      fs.chownSync(other, 0, 500)
      const sources = [node.publish(1, volume), node.publish(2, other, undefined, 'pvc-2')]
      const end = await node.serve()
      const create = (pod: number, id: string) =>
        end.call('CreateContainer', 'ContainerRequest', node.request(pod, ASKS, sources[pod - 1], id.repeat(64)))
      const lockedVolumes = () => [...new Set(locked(`${node.state}/ownership`).map(dirname))]
      const inKernel = () => memoryOfWorkers(node).filter(({ pid }) => readProcessState(pid) === 'D')

      const release = await lockDirectory(holder, volume)
      expect((await create(1, 'a')).status?.message).toContain('the making of the mapped mount took long')
      // A call on another volume has its answer while that worker still waits.
      expect(replaced(await create(2, 'b'))).toHaveLength(1)
      expect(hasBit(other)).toBe(true)
      // From Linux 6.18 on the kernel lets it end; before, it waits until the directory is free.
      await expect.poll(() => lockedVolumes().length - inKernel().length, { timeout: 30_000 }).toBe(0)
      expect(hasBit(volume)).toBe(false)

      await release()
      await expect.poll(inKernel, { timeout: 30_000 }).toEqual([])
      // Its last change is undone by the job that comes next.
      await expect.poll(lockedVolumes, { timeout: 30_000 }).toEqual([])
      await expect.poll(() => hasBit(volume), { timeout: 30_000 }).toBe(false)
      await expect
        .poll(async () => (await create(1, 'c')).status?.message, { timeout: 30_000, interval: 1000 })
        .toBeUndefined()
      expect(hasBit(volume)).toBe(true)
    })
  },
)

/** The locks below a directory that a process has. */
function locked(directory: string): string[] {
  if (!fs.existsSync(directory)) return []
  const names = fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => `${directory}/${name}`)
  const files = names.filter((name) => fs.lstatSync(name, { throwIfNoEntry: false })?.isFile())
  return files.filter((name) => spawnSync('flock', ['--nonblock', name, 'true']).status !== 0)
}
