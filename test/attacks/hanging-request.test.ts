import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { startHangingServer } from '../helpers/hanging.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe()
const SUCCESS = { status: 'Success' }
const FILES = 3
const WALKED = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000', fsGroupChangePolicy: 'Always' }
/** So many requests are answered; no call makes as many as the last. */
const COUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 48, 200]
/** At the same time: who waits for a server takes no processor. */
const TOGETHER = 7
/** Milliseconds: helperTimeoutSeconds is five, for the walk too, each call asks first, and the machine is busy. */
const LONGEST = 25_000
const SILENT = /respond/

describe.skipIf(skipReason !== '')(
  addSkipReason('a FUSE server that hangs after a number of requests', skipReason),
  () => {
    function newNode(): FuseNode {
      const node = new FuseNode([])
      const config = JSON.parse(fs.readFileSync(node.config, 'utf8'))
      fs.writeFileSync(node.config, JSON.stringify({ ...config, helperTimeoutSeconds: 5 }))
      return node
    }

    async function ends<T>(work: () => T | Promise<T>): Promise<T> {
      const began = performance.now()
      const result = await work()
      expectInTime(performance.now() - began, LONGEST)
      return result
    }

    /** One node and server for each number of requests. @returns how many calls were given up, and how many were not */
    async function each(work: (node: FuseNode, source: string, server: Server, count: string) => Promise<boolean>) {
      const left = [...COUNTS]
      const seen = { givenUp: 0, done: 0 }
      const next = async (): Promise<void> => {
        const count = left.shift()
        if (count === undefined) return
        const node = newNode()
        const source = `${node.volumes}/served`
        const server = await startHangingServer(source, `${node.top}/hangs`, 'all', FILES)
        seen[(await work(node, source, server, String(count))) ? 'done' : 'givenUp']++
        expect(node.mountState()).toEqual([])
        return next()
      }
      await Promise.all(Array.from({ length: TOGETHER }, next))
      return seen
    }

    type Server = Awaited<ReturnType<typeof startHangingServer>>

    /** Calls of the pod go on when its server does. */
    async function expectAllRight(node: FuseNode, options: Record<string, string>) {
      expect(await node.mount('a', options)).toEqual(SUCCESS)
      expect(await node.unmount('a')).toEqual(SUCCESS)
      expect(node.layers('a')).toEqual([])
    }

    it.each([
      ['without ownership', {}],
      ['with a walk', WALKED],
    ])('a mount %s ends within its deadline at every request, and so does its unmount', async (_, options) => {
      const seen = await each(async (node, source, server, count) => {
        server.hang(count)
        const answer = await ends(() => node.mount('a', { ...options, source }))
        const isDone = answer.status === 'Success'
        if (!isDone) expect(answer).toEqual({ status: 'Failure', message: expect.stringMatching(SILENT) })
        expect(await ends(() => node.unmount('a'))).toEqual(SUCCESS)
        server.resume()
        await expectAllRight(node, { ...options, source })
        return isDone
      })
      expect(seen.givenUp).toBeGreaterThan(3)
      expect(seen.done).toBeGreaterThan(0)
    })

    it('an unmount with a restore ends within its deadline at every request', async () => {
      const seen = await each(async (node, source, server, count) => {
        const options = { ...WALKED, source, restoreOnUnmount: 'true' }
        expect(await node.mount('a', options)).toEqual(SUCCESS)
        server.hang(count)
        expect(await ends(() => node.unmount('a'))).toEqual(SUCCESS)
        expect(node.layers('a')).toEqual([])
        server.resume()
        const isDone = fs.statSync(`${source}/file`).gid === 0
        await expectAllRight(node, options)
        expect(fs.statSync(`${source}/file`).gid).toBe(0)
        return isDone
      })
      expect(seen.givenUp).toBeGreaterThan(3)
    })

    it('a heal of a missing mount ends within its deadline at every request, and repairs other mounts', async () => {
      const node = newNode()
      const local = `${node.volumes}/local`
      fs.mkdirSync(local)
      expect(await node.mount('local', { source: local })).toEqual(SUCCESS)
      const server = await startHangingServer(`${node.volumes}/served`, `${node.top}/hangs`, 'all', FILES)
      const options = { source: `${node.volumes}/served` }
      for (const count of COUNTS.filter((_, index) => index % 3 === 0)) {
        expect(await node.mount('a', options)).toEqual(SUCCESS)
        for (const pod of ['a', 'local']) execFileSync('umount', ['--lazy', node.podDirectory(pod)])
        server.hang(String(count))
        const [found] = (await ends(() => node.heal())).filter(({ directory }) => directory === node.podDirectory('a'))
        if (node.layers('a').length === 0) expect(found).toMatchObject({ reason: expect.stringMatching(SILENT) })
        else expect(found?.action).toBe('mounted')
        expect(node.layers('local')).toHaveLength(1)
        await ends(() => node.byHand('status'))
        server.resume()
      }
      await expectAllRight(node, options)
      expect(await node.unmount('local')).toEqual(SUCCESS)
    })

    it('a check of a healthy mount with links to the server ends, and delays no other mount', async () => {
      const node = newNode()
      const source = `${node.volumes}/outer`
      fs.mkdirSync(`${source}/below`, { recursive: true })
      fs.symlinkSync('below', `${source}/link`)
      const server = await startHangingServer(`${source}/below`, `${node.top}/hangs`, 'all', FILES)
      const options = { source, subPath: 'link' }
      expect(await node.mount('a', options)).toEqual(SUCCESS)
      for (const count of ['0', '1', '2', '4', '8']) {
        server.hang(count)
        expect((await ends(() => node.heal())).map(({ directory }) => directory)).toEqual([node.podDirectory('a')])
        server.resume()
      }
      await expectAllRight(node, options)
    })
  },
)
