import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { CsiNode } from '../csi/node.ts'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { titled } from '../helpers/needs.ts'
import { compile } from '../race/compile.ts'

const cannot = cannotServe('cc')
const SUCCESS = { status: 'Success' }
const GROUP = 2000
const WALKED = { ownership: 'walk', 'kubernetes.io/fsGroup': String(GROUP), fsGroupChangePolicy: 'Always' }
/** Seconds, of helperTimeoutSeconds. */
const PATIENCE = 8
/** Seconds, on a busy machine too; a call that waits for the directory takes for ever. */
const IN_TIME = PATIENCE + 12
/** Seconds: a call that knows of the locked directory does not wait for the full time. */
const AT_ONCE = PATIENCE - 2
const GIVEN_UP = /process \d+, which worked on the volume, was given up after 8 s/
const NAMED = /process \d+/

describe.skipIf(cannot !== '')(titled('a directory that a process of a pod keeps locked', cannot), () => {
  let node: FuseNode
  let volume: string
  let holder: string
  let asked: Record<string, string>
  beforeEach((context) => {
    holder = compile('attacks/held-directory.c')
    context.skip(spawnSync(holder).status !== 0, 'needs userfaultfd(2)')
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

  /** @returns ends the process that keeps the directory locked */
  async function hold(path: string) {
    const child = spawn(holder, [path], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    await new Promise((done) => child.stdout.once('data', done))
    await new Promise((done) => setTimeout(done, 200))
    return () => {
      child.kill('SIGKILL')
      return new Promise((done) => child.once('exit', done))
    }
  }

  async function within<T>(seconds: number, work: () => T | Promise<T>): Promise<T> {
    const began = performance.now()
    const result = await work()
    expect((performance.now() - began) / 1000).toBeLessThan(seconds)
    return result
  }

  const groups = () => ['.', 'a', 'b', 'd', 'd/c'].map((name) => fs.statSync(`${volume}/${name}`).gid)

  it('a mount fails in its deadline, another pod learns the process at once, and other volumes are not delayed', async () => {
    const other = `${node.volumes}/other`
    makeVolume(other)
    const release = await hold(`${volume}/d`)
    const first = within(IN_TIME, () => node.mount('a', asked))
    await new Promise((done) => setTimeout(done, 1500))
    // While the first call still waits, and after it was given up.
    const second = await within(AT_ONCE, () => node.mount('b', asked))
    expect(second).toEqual({ status: 'Failure', message: expect.stringMatching(NAMED) })
    expect(await within(AT_ONCE, () => node.mount('c', { ...asked, source: other }))).toEqual(SUCCESS)
    expect(await first).toEqual({ status: 'Failure', message: expect.stringMatching(GIVEN_UP) })
    const third = await within(AT_ONCE, () => node.mount('b', asked))
    expect(third).toEqual({ status: 'Failure', message: expect.stringMatching(NAMED) })
    for (const pod of ['a', 'b', 'c']) expect(await within(AT_ONCE, () => node.unmount(pod))).toEqual(SUCCESS)
    await release()
    expect(await node.mount('a', asked)).toEqual(SUCCESS)
    expect(groups()).toEqual([GROUP, GROUP, GROUP, GROUP, GROUP])
    expect(await node.unmount('a')).toEqual(SUCCESS)
    expect(groups()).toEqual([0, 0, 0, 0, 0])
    expect(node.mountState()).toEqual([])
    expect(fs.existsSync(`${node.state}/ownership`)).toBe(false)
  })

  it('an unmount succeeds in its deadline, and the next one restores the volume', async () => {
    expect(await node.mount('a', asked)).toEqual(SUCCESS)
    const release = await hold(`${volume}/d`)
    expect(await within(IN_TIME, () => node.unmount('a'))).toEqual(SUCCESS)
    expect(node.layers('a')).toEqual([])
    expect(JSON.stringify(node.logLines())).toMatch(/volume not restored, tried again at its next unmount: process \d+/)
    await release()
    expect(await node.mount('b', asked)).toEqual(SUCCESS)
    expect(await node.unmount('b')).toEqual(SUCCESS)
    expect(groups()).toEqual([0, 0, 0, 0, 0])
  })

  it('apply, restore, plan and heal end in their deadline', async () => {
    expect(await node.mount('a', { ...asked, restoreOnUnmount: 'false' })).toEqual(SUCCESS)
    expect(await node.unmount('a')).toEqual(SUCCESS)
    const release = await hold(`${volume}/d`)
    const byHand = (...args: string[]) => node.byHand<{ error?: string; outcome?: string }>(...args)
    const given = /the walk of .* was given up: process \d+/
    expect((await within(IN_TIME, () => byHand('restore', volume))).error).toMatch(given)
    const apply = () => byHand('apply', volume, '--fsgroup', '3000', '--fs-group-change-policy', 'Always')
    expect((await within(AT_ONCE, apply)).error).toMatch(given)
    // A survey reads: the kernel lets it, while nobody waits for the lock.
    expect((await within(IN_TIME, () => byHand('plan', volume, '--fsgroup', '3000'))).error ?? '').toMatch(
      /^$|given up/,
    )
    expect((await within(IN_TIME, () => byHand('restore', '--dry-run', volume))).error ?? '').toMatch(/^$|given up/)
    await within(IN_TIME, () => node.heal())
    await within(IN_TIME, () => node.byHand('status'))
    await release()
    expect(byHand('restore', volume).outcome).toBe('restored')
    expect(groups()).toEqual([0, 0, 0, 0, 0])
  })
})

describe.skipIf(cannot !== '')(titled('a directory that is kept locked, through CSI', cannot), () => {
  it('a publication fails in its deadline, names the process, and the pod can go', async (context) => {
    const holder = compile('attacks/held-directory.c')
    context.skip(spawnSync(holder).status !== 0, 'needs userfaultfd(2)')
    const node = new CsiNode()
    onTestFinished(() => node.end())
    node.configure({ helperTimeoutSeconds: PATIENCE })
    await node.serve()
    const source = node.volume('data', 3)
    const child = spawn(holder, [source], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    await new Promise((done) => child.stdout.once('data', done))
    await new Promise((done) => setTimeout(done, 200))
    const attributes = { ownership: 'walk' }
    const group = String(GROUP)
    const began = performance.now()
    expect(JSON.stringify(await node.publish(1, source, { attributes, group }))).toMatch(GIVEN_UP)
    expect((performance.now() - began) / 1000).toBeLessThan(IN_TIME)
    const again = performance.now()
    expect(JSON.stringify(await node.publish(2, source, { attributes, group }))).toMatch(NAMED)
    expect(await node.unpublish(1)).toMatchObject({ code: 'OK' })
    expect((performance.now() - again) / 1000).toBeLessThan(AT_ONCE)
    child.kill('SIGKILL')
    expect(await node.publish(2, source, { attributes, group })).toMatchObject({ code: 'OK' })
    expect(fs.statSync(source).gid).toBe(GROUP)
    expect(await node.unpublish(2)).toMatchObject({ code: 'OK' })
  })
})
