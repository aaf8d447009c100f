import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PodInfoOnMountGuard } from '../../../src/frontends/csi/pod-info.ts'
import { resolveCsiSocketPaths, serveCsi } from '../../../src/frontends/csi/server.ts'
import { addSkipReason } from '../../helpers/needs.ts'
import { makeDeadSocket } from '../../helpers/sockets.ts'
import { isRoot } from '../../helpers/stage.ts'

const NAME = 'modekeep.csi'
const cannot = isRoot ? '' : 'files of other users need root; run "sudo npm test"'

let top: string
let socket: string
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-csi-'))
  socket = resolveCsiSocketPaths(join(top, 'kubelet'), NAME).csi
  fs.mkdirSync(dirname(socket), { recursive: true, mode: 0o700 })
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

/** Serves until all its sockets are there. */
async function serve(): Promise<void> {
  const stop = new AbortController()
  const podInfo = new PodInfoOnMountGuard({
    name: NAME,
    isStated: async () => true,
    readObject: undefined,
    now: () => performance.now(),
    log: () => {},
  })
  const startWorker = () => ({
    send() {
      throw new Error('no task is expected')
    },
    kill() {},
    close() {},
  })
  const log = (_level: string, event: string) => void (event === 'listening' && stop.abort())
  const settings = { name: NAME, directory: join(top, 'kubelet'), version: '0', nodeId: 'node', patienceMs: 1000 }
  await serveCsi({ ...settings, podInfo, startWorker, log }, stop.signal)
}

describe.skipIf(!isRoot)(addSkipReason('sockets of the CSI server', cannot), () => {
  it("the CSI server's sockets replace a socket that a killed server of root left", async () => {
    await makeDeadSocket(socket)
    await serve()
    expect(fs.readdirSync(dirname(socket))).toEqual([])
  })

  it.each<[string, () => Promise<void>]>([
    [
      "another user's socket without a listener",
      async () => {
        await makeDeadSocket(socket)
        fs.chownSync(socket, 1000, 1000)
      },
    ],
    ['a FIFO', async () => void execFileSync('mkfifo', [socket])],
    [
      'a link to a socket',
      async () => {
        await makeDeadSocket(join(top, 'left.sock'))
        fs.symlinkSync(join(top, 'left.sock'), socket)
      },
    ],
  ])("the CSI server's sockets do not replace %s", async (_what, prepare) => {
    await prepare()
    const { ino } = fs.lstatSync(socket)
    await expect(serve()).rejects.toThrow(/^something else is at/)
    expect(fs.lstatSync(socket).ino).toBe(ino)
  })

  it.each(['kubelet', 'kubelet/plugins', `kubelet/plugins/${NAME}`])(
    "the CSI server's sockets are not created if other users can write to %s, which the message names",
    async (name) => {
      fs.chmodSync(join(top, name), 0o777)
      await expect(serve()).rejects.toThrow(`(users other than root can write to ${join(top, name)})`)
      expect(fs.readdirSync(dirname(socket))).toEqual([])
    },
  )
})
