import { execa } from 'execa'
import { expect, it, onTestFinished } from 'vitest'
import { CsiNode } from '../frontends/csi/node.ts'
import { expectInTime } from '../helpers/busy-machine.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { MODEKEEP } from './modekeep.ts'

const cannot = process.getuid?.() === 0 ? '' : 'needs root; run "sudo npm test"'

it.skipIf(cannot)(
  addSkipReason(
    'the probe of the CSI server succeeds if it is healthy, and fails if it hangs, was killed or has ended',
    cannot,
  ),
  { timeout: 120_000 },
  async () => {
    const node = new CsiNode()
    onTestFinished(() => node.end())
    const probe = async (...args: string[]) => {
      const before = performance.now()
      const words = ['csi', '--probe', '--kubelet-dir', node.kubelet, ...args]
      const { exitCode, stdout, stderr } = await execa(MODEKEEP, words, { reject: false })
      return { exitCode, stdout, stderr, seconds: (performance.now() - before) / 1000 }
    }
    const failed = (why: string) => ({ exitCode: 1, stdout: '', stderr: expect.stringContaining(why) })
    expect(await probe()).toMatchObject(
      failed(`no CSI server of modekeep.csi runs here: there is no socket ${node.socket}`),
    )
    await node.serve()
    expect(await probe()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' })
    expect(await probe('--driver-name', 'other.csi')).toMatchObject(failed('no CSI server of other.csi'))

    node.server.kill('SIGSTOP')
    const hanging = await probe()
    expect(hanging).toMatchObject(failed(`the CSI server at ${node.socket} gives no answer within 5 s`))
    expect(hanging.seconds).toBeGreaterThan(4)
    expectInTime(hanging.seconds * 1000, 9000)
    node.server.kill('SIGCONT')
    expect(await probe()).toMatchObject({ exitCode: 0 })

    node.server.kill('SIGKILL')
    await expect.poll(() => node.server.signalCode).toBe('SIGKILL')
    const killed = await probe()
    expect(killed).toMatchObject(failed('gives no answer'))
    expectInTime(killed.seconds * 1000, 4000)
  },
)
