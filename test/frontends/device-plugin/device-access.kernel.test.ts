import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { explainRootOnlyDevice } from '../../../src/frontends/device-plugin/decide.ts'
import { isRoot } from '../../helpers/stage.ts'
import { Stage, until } from './stage.ts'

const NOBODY = 65534

/** Whether a user that is not root can open a device for reading and writing. */
function opensAsNobody(device: string): boolean {
  const { status } = spawnSync('sh', ['-c', `exec 3<>"${device}"`], { uid: NOBODY, gid: NOBODY })
  return status === 0
}

const title = 'devices that only root can open'

describe.skipIf(!isRoot)(isRoot ? title : `${title} (skipped: makes a device; run "sudo npm test")`, () => {
  it('a device that only root can open is healthy, and is logged once while its mode stays the same', async () => {
    await using stage = new Stage()
    const device = join(stage.top, 'fuse')
    fs.chmodSync(stage.top, 0o755)
    execFileSync('mknod', ['-m', '0600', device, 'c', '1', '3'])
    await stage.kubelet.start()
    const plugin = stage.plugin({ device, timing: { checkMs: 5 } })
    await until(() => stage.kubelet.health.join() === 'Healthy')
    // Two restarts take many looks.
    await stage.kubelet.restart()
    await until(() => stage.kubelet.lists.length === 2)
    await stage.kubelet.restart()
    await until(() => stage.kubelet.lists.length === 3)
    const restricted = { level: 'warn', event: 'restricted', message: explainRootOnlyDevice(device, 0o600) }
    expect(plugin.named('restricted')).toEqual([restricted])
    fs.chmodSync(device, 0o666)
    await new Promise((resolve) => setTimeout(resolve, 200))
    fs.chmodSync(device, 0o660)
    await until(() => plugin.named('restricted').length === 2)
    await plugin.end()
    expect(plugin.named('health')).toHaveLength(1)
  })

  it.each([0o600, 0o660, 0o644, 0o666, 0o622])(
    'a device with mode %o is reported as restricted exactly if another user cannot open the device',
    (mode) => {
      const top = fs.mkdtempSync(join(tmpdir(), 'modekeep-device-'))
      try {
        fs.chmodSync(top, 0o755)
        const device = join(top, 'fuse')
        execFileSync('mknod', ['-m', mode.toString(8), device, 'c', '1', '3'])
        expect(opensAsNobody(device)).toBe(explainRootOnlyDevice(device, fs.statSync(device).mode) === undefined)
      } finally {
        fs.rmSync(top, { recursive: true })
      }
    },
  )
})
