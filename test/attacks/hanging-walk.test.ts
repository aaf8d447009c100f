import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotServe, FuseNode, until } from '../helpers/fuse-node.ts'
import { readProcessState, startHangingServer } from '../helpers/hanging.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe()
const SUCCESS = { status: 'Success' }
const [GETATTR, SETATTR, READDIR] = [3, 4, 28]
const FILES = 300
const GROUP = 2000
const WALKED = { ownership: 'walk', 'kubernetes.io/fsGroup': String(GROUP), fsGroupChangePolicy: 'Always' }
/** Seconds, of helperTimeoutSeconds. */
const DEADLINE = 5
/** Seconds: no call takes as long, also on a busy machine; one that waits for the server never ends. */
const SOON = 40
const LEFT = /^process \d+ still walks the volume for a call that is over/
const GIVEN_UP = /does not respond any more, so the walk of the volume was given up after 5 s/

describe.skipIf(skipReason !== '')(
  addSkipReason('a FUSE server that hangs in the middle of a walk', skipReason),
  () => {
    let node: FuseNode
    let served: string
    let asked: Record<string, string>
    beforeEach(() => {
      node = new FuseNode([])
      const config = JSON.parse(fs.readFileSync(node.config, 'utf8'))
      fs.writeFileSync(node.config, JSON.stringify({ ...config, helperTimeoutSeconds: DEADLINE }))
      served = `${node.volumes}/served`
      asked = { ...WALKED, source: served, restoreOnUnmount: 'true' }
    })

    const serve = (opcode: number) => startHangingServer(served, `${node.top}/hangs`, String(opcode), FILES)
    const groups = () => fs.readdirSync(served).map((name) => fs.statSync(`${served}/${name}`).gid)
    const countOf = (gid: number) => groups().filter((group) => group === gid).length

    async function ends<T>(work: () => T | Promise<T>, seconds = SOON): Promise<T> {
      const began = performance.now()
      const result = await work()
      expectInTime(performance.now() - began, seconds * 1000)
      return result
    }

    /** The process that walks the volume of the server; undefined where there is none. */
    function walker(): number | undefined {
      const places = `${node.state}/ownership`
      const locks = fs.existsSync(places) ? fs.readdirSync(places).map((name) => `${places}/${name}/walker.lock`) : []
      const pids = locks.filter((lock) => fs.existsSync(lock)).map((lock) => Number(fs.readFileSync(lock, 'utf8')))
      return pids.find((pid) => pid > 0 && readProcessState(pid) !== undefined)
    }

    /** The server has taken a request of the walker's, and does not answer it. */
    async function untilStuck() {
      for (let seen = 0; seen < 5; seen = readProcessState(walker()) === 'D' ? seen + 1 : 0) {
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }

    /** From here on everything works, and nothing is left in the end. @param others pods that are unmounted too */
    async function expectAllRight(...others: string[]) {
      expect(await node.mount('b', asked)).toEqual(SUCCESS)
      expect(countOf(GROUP)).toBe(FILES)
      for (const pod of ['b', ...others]) expect(await node.unmount(pod)).toEqual(SUCCESS)
      expect(countOf(0)).toBe(FILES)
      expect(fs.existsSync(`${node.state}/ownership`)).toBe(false)
      expect(node.mountState()).toEqual([])
    }

    it.each([
      ['a change', SETATTR, 150],
      ['an inspection', GETATTR, 400],
      ['a directory', READDIR, 5],
    ])(
      'at %s: every call ends within its deadline, no other volume waits, and the walk continues when the server responds',
      async (_, opcode, after) => {
        const server = await serve(opcode)
        const local = `${node.volumes}/local`
        fs.mkdirSync(local)
        server.hang(String(after))
        const first = await ends(() => node.mount('a', asked))
        expect(first).toEqual({ status: 'Failure', message: expect.stringMatching(GIVEN_UP) })
        expect(walker()).toBeDefined()
        expect(node.layers('a')).toEqual([])
        const second = await ends(() => node.mount('b', asked))
        expect(second.message).toMatch(opcode === GETATTR ? /does not respond/ : LEFT)
        expect(await ends(() => node.mount('c', { ...asked, source: local }))).toEqual(SUCCESS)
        for (const pod of ['a', 'b', 'c']) expect(await ends(() => node.unmount(pod))).toEqual(SUCCESS)
        expect(await ends(() => node.heal())).toEqual([])
        await ends(() => node.byHand('gc'))
        await ends(() => node.byHand('status'))
        server.resume()
        await until(() => walker() === undefined)
        await expectAllRight()
      },
    )

    it('at a restore: the pod can be deleted, and the rest is restored when the server responds', async () => {
      const server = await serve(SETATTR)
      expect(await node.mount('a', asked)).toEqual(SUCCESS)
      expect(countOf(GROUP)).toBe(FILES)
      server.hang('150')
      expect(await ends(() => node.unmount('a'))).toEqual(SUCCESS)
      expect(node.layers('a')).toEqual([])
      expect(JSON.stringify(node.logLines())).toMatch(
        /not restored, tried again at its next unmount: .* respond any more/,
      )
      expect(await ends(() => node.unmount('a'))).toEqual(SUCCESS)
      server.resume()
      await until(() => walker() === undefined)
      await expectAllRight()
    })

    it('at an apply or a manual restore: the command ends within its deadline and reports it', async () => {
      const server = await serve(SETATTR)
      server.hang('150')
      const byHand = (...args: string[]) => node.byHand<{ error?: string; outcome?: string }>(...args)
      const apply = () => byHand('apply', served, '--fsgroup', String(GROUP), '--fs-group-change-policy', 'Always')
      expect((await ends(apply)).error).toMatch(GIVEN_UP)
      expect((await ends(() => byHand('restore', served))).error).toMatch(LEFT)
      server.resume()
      await until(() => walker() === undefined)
      expect(apply().error).toBeUndefined()
      expect(countOf(GROUP)).toBe(FILES)
      server.hang('150')
      expect((await ends(() => byHand('restore', served))).error).toMatch(GIVEN_UP)
      server.resume()
      await until(() => walker() === undefined)
      expect(byHand('restore', served).outcome).toBe('restored')
      expect(countOf(0)).toBe(FILES)
    })

    it('while the call is killed: the next call names the process that it waits for, and continues when that has ended', async () => {
      const server = await serve(SETATTR)
      server.hang('150')
      const { child, ended } = node.start(['mount', node.podDirectory('a'), JSON.stringify(asked)])
      await untilStuck()
      child.kill('SIGKILL')
      for (const pid of node.residentWorkers()) process.kill(pid, 'SIGKILL')
      await ended
      const pid = walker()
      const { message } = await ends(() => node.mount('b', asked))
      expect(message).toMatch(LEFT)
      expect(message).toContain(`process ${pid} `)
      expect(walker()).toBe(pid)
      server.resume()
      await until(() => walker() === undefined)
      await expectAllRight('a')
    })

    it('that is only slow is waited for, and a killed call leaves no walking process', async () => {
      const server = await serve(SETATTR)
      const [first] = fs.readdirSync(served)
      server.hang('slow')
      const { child, ended } = node.start(['mount', node.podDirectory('a'), JSON.stringify(asked)])
      // Of one alone: each look waits for its turn among the changes.
      await until(() => walker() !== undefined && fs.statSync(`${served}/${first}`).gid === GROUP)
      child.kill('SIGKILL')
      for (const pid of node.residentWorkers()) process.kill(pid, 'SIGKILL')
      await ended
      await ends(() => until(() => walker() === undefined))
      const changed = countOf(GROUP)
      expect(changed).toBeLessThan(FILES)
      await new Promise((resolve) => setTimeout(resolve, 500))
      expect(countOf(GROUP)).toBe(changed)
      server.resume()
      server.hang('slow')
      // Longer than the deadline in all, each answer less.
      const began = performance.now()
      expect(await node.mount('a', asked)).toEqual(SUCCESS)
      expect(performance.now() - began).toBeGreaterThan(DEADLINE * 1000)
      server.resume()
      await expectAllRight('a')
    })

    it('below heal --watch: other mounts are repaired within 2 s', async () => {
      const local = `${node.volumes}/local`
      fs.mkdirSync(local)
      const server = await serve(READDIR)
      expect(await node.mount('a', asked)).toEqual(SUCCESS)
      expect(await node.mount('b', { source: local })).toEqual(SUCCESS)
      const watching = spawn(BINARY, ['heal', '--watch'], { env: { MODEKEEP_CONFIG: node.config }, stdio: 'ignore' })
      onTestFinished(() => void watching.kill('SIGKILL'))
      const isBack = () => until(() => node.layers('b').length === 1)
      const unmountOther = () => execFileSync('umount', ['--lazy', node.podDirectory('b')])
      unmountOther()
      await isBack()
      server.hang('5')
      execFileSync('umount', ['--lazy', node.podDirectory('a')])
      await untilStuck()
      for (let times = 0; times < 2; times++) {
        unmountOther()
        await ends(isBack, 2)
      }
      expect(readProcessState(walker())).toBe('D')
      server.resume()
      await until(() => node.layers('a').length === 1)
      for (const pod of ['a', 'b']) expect(await node.unmount(pod)).toEqual(SUCCESS)
      expect(countOf(0)).toBe(FILES)
    })
  },
)
