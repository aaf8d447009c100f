import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { removeStalePluginSockets } from '../../../src/frontends/device-plugin/sockets.ts'
import { addSkipReason } from '../../helpers/needs.ts'
import { makeDeadSocket } from '../../helpers/sockets.ts'
import { isRoot } from '../../helpers/stage.ts'
import { Stage, until } from './stage.ts'

const cannot = isRoot ? '' : 'files of other users need root; run "sudo npm test"'
/** Old enough that no other plugin can just have made it. */
const LATER = 120_000

let top: string
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-sweep-'))
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

const swept = () => removeStalePluginSockets(top, Date.now() + LATER)
const at = (number: number) => join(top, `modekeep-fuse-${number}-a.sock`)

describe.skipIf(!isRoot)(addSkipReason('sockets of the device plugin', cannot), () => {
  it("the device plugin's sockets are removed after a plugin of root was killed, and a FIFO or another user's socket with their names stays", async () => {
    await makeDeadSocket(at(1))
    await makeDeadSocket(at(2))
    fs.chownSync(at(2), 1000, 1000)
    execFileSync('mkfifo', [at(3)])
    fs.symlinkSync(at(2), at(4))
    expect(await swept()).toEqual(['modekeep-fuse-1-a.sock'])
    expect(fs.readdirSync(top).sort()).toEqual([2, 3, 4].map((number) => `modekeep-fuse-${number}-a.sock`))
  })

  it("the device plugin's sockets are not removed if other users can write to their directory", async () => {
    await makeDeadSocket(at(1))
    fs.chmodSync(top, 0o777)
    await expect(swept()).rejects.toThrow(/EPERM \(users other than root can write to /)
    expect(fs.readdirSync(top)).toEqual(['modekeep-fuse-1-a.sock'])
  })

  it("the device plugin's sockets are not offered to another user's kubelet.sock", async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    fs.chownSync(stage.kubelet.socket, 1000, 1000)
    const plugin = stage.plugin()
    await until(() => plugin.named('register-failed').length > 0 || stage.kubelet.registrations.length > 0)
    expect(plugin.named('register-failed')[0]?.message).toMatch(/EPERM \(it belongs to another user than root\)/)
    expect(stage.kubelet.registrations).toEqual([])
  })
})
