import { execFileSync, spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cannotServe, until } from '../helpers/fuse-node.ts'
import { startHangingServer } from '../helpers/hanging.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason, requireProgram } from '../helpers/needs.ts'
import { compile } from '../race/compile.ts'

const skipReason = cannotServe('cc', 'unshare')
const READ = 15

describe.skipIf(skipReason !== '')(
  addSkipReason('a process of a pod with locked memory that waits for a server', skipReason),
  () => {
    it('does not delay heal --watch', async () => {
      const node = new BinaryNode()
      const served = `${node.top}/served`
      const source = `${node.volumes}/local`
      fs.mkdirSync(source)
      const server = await startHangingServer(served, `${node.top}/hangs`, String(READ))
      server.hang()
      // As in a pod: root, with mounts of its own.
      const program = compile('attacks/held-memory.c')
      const args = ['--mount', program, `${served}/file`]
      const holder = spawn(requireProgram('unshare'), args, { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void holder.kill('SIGKILL'))
      await new Promise((done) => holder.stdout.once('data', done))
      const reading = { timeout: 1000, killSignal: 'SIGKILL' } as const
      // Its memory is locked a moment after its first output.
      await until(() => spawnSync('cat', [`/proc/${holder.pid}/cmdline`], reading).signal === 'SIGKILL')

      const options = JSON.stringify({ source })
      expect(await node.call('mount', node.podDirectory('a'), options)).toEqual({ status: 'Success' })
      const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
      const watching = spawn(BINARY, ['heal', '--watch'], { env, stdio: 'ignore' })
      onTestFinished(() => void watching.kill('SIGKILL'))
      for (const _ of ['once', 'twice']) {
        execFileSync('umount', ['--lazy', node.podDirectory('a')])
        await until(() => node.layers('a').length === 1)
      }
      watching.kill('SIGTERM')
      expect(await new Promise((done) => watching.once('exit', done))).toBe(0)
    })
  },
)
