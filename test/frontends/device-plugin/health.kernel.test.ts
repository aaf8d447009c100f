import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { examineDeviceCondition } from '../../../src/frontends/device-plugin/plugin.ts'
import { Stage, until } from './stage.ts'

describe('the health of the devices', () => {
  it('is Unhealthy while the device is missing, and Healthy when it has appeared, on one watch', async () => {
    await using stage = new Stage()
    const device = join(stage.top, 'fuse')
    await stage.kubelet.start()
    const plugin = stage.plugin({ device, timing: { checkMs: 20 } })
    await until(() => stage.kubelet.health.join() === 'Unhealthy')
    fs.symlinkSync('/dev/null', device)
    await until(() => stage.kubelet.health.join() === 'Healthy')
    fs.rmSync(device)
    await until(() => stage.kubelet.health.join() === 'Unhealthy')
    expect(stage.kubelet.lists).toHaveLength(3)
    expect(stage.kubelet.registrations).toHaveLength(1)
    const message = `ENOENT: no such file or directory, open '${device}'`
    expect(plugin.named('health')).toEqual([
      { level: 'warn', event: 'health', healthy: false, message },
      { level: 'info', event: 'health', healthy: true },
      { level: 'warn', event: 'health', healthy: false, message },
    ])
  })

  it('is sent once while the health does not change, despite many checks', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    const plugin = stage.plugin({ timing: { checkMs: 1 } })
    await until(() => stage.kubelet.lists.length === 1)
    // Two restarts take many looks.
    await stage.kubelet.restart()
    await until(() => stage.kubelet.lists.length === 2)
    await stage.kubelet.restart()
    await until(() => stage.kubelet.lists.length === 3)
    await plugin.end()
    expect(stage.kubelet.lists).toHaveLength(3)
    expect(plugin.named('health')).toHaveLength(1)
  })

  it('is Unhealthy if a regular file has the name of the device', async () => {
    await using stage = new Stage()
    const device = join(stage.top, 'fuse')
    fs.writeFileSync(device, '')
    expect(await examineDeviceCondition(device)).toEqual({ unhealthy: `${device} is not a character device` })
    expect(await examineDeviceCondition('/dev/null')).toEqual({ restricted: undefined })
  })
})
