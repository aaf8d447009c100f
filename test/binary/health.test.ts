import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { findFreePort } from '../helpers/ports.ts'
import { isRoot } from '../helpers/stage.ts'

const title = `heal --watch over HTTP${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  async function watched(...more: string[]) {
    const node = new BinaryNode()
    const at = `127.0.0.1:${await findFreePort()}`
    const { child, ended } = node.start(['heal', '--watch', '--listen', at, ...more])
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const get = (path: string, init: RequestInit = {}) =>
      fetch(`http://${at}${path}`, { ...init, signal: AbortSignal.timeout(20_000) })
    const status = (path: string) =>
      get(path).then(
        ({ status }) => status,
        () => 0,
      )
    await expect.poll(() => status('/readyz'), { timeout: 600_000 }).toBe(200)
    return { node, at, child, ended, get, status }
  }

  it('heal --watch --listen reports over HTTP that it runs and is healthy, and with --metrics the text of status --prometheus', async () => {
    const { node, get, status } = await watched('--metrics')
    const directory = node.podDirectory('a')
    fs.mkdirSync(`${node.volumes}/data`)
    expect(await node.call('mount', directory, JSON.stringify({ source: `${node.volumes}/data` }))).toEqual({
      status: 'Success',
    })
    expect(await status('/healthz')).toBe(200)
    const answer = await get('/metrics')
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(await answer.text()).toContain('modekeep_mounts{type="bind",ownership="none",state="healthy"} 1')
    expect(await status('/else')).toBe(404)
    expect((await get('/healthz', { method: 'POST' })).status).toBe(405)
  })

  it('heal --watch --listen serves no metrics without --metrics, and closes its port at its end', async () => {
    const { status, child, ended } = await watched()
    expect(await status('/metrics')).toBe(404)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
    expect(await status('/healthz')).toBe(0)
  })

  it('heal --watch --listen reports over HTTP why its repairs fail', async () => {
    const { node, get, status } = await watched()
    const config = `${node.top}/config.json`
    const good = fs.readFileSync(config, 'utf8')
    fs.writeFileSync(config, '{ "allow": 1 }')
    // What wakes it.
    const wake = () => node.call('mount', node.podDirectory('a'), JSON.stringify({ 'kubernetes.io/fsType': 'tmpfs' }))
    fs.mkdirSync(`${node.volumes}/data`)
    await expect
      .poll(
        async () => {
          fs.writeFileSync(config, good)
          await wake()
          fs.writeFileSync(config, '{ "allow": 1 }')
          await node.call('unmount', node.podDirectory('a'))
          return status('/readyz')
        },
        { timeout: 600_000 },
      )
      .toBe(503)
    expect(await (await get('/readyz')).text()).toContain('key "allow"')
    expect(await status('/healthz')).toBe(200)
  })

  it('heal --watch --listen refuses a port that is already in use', async () => {
    const { node, at } = await watched()
    const { text, code } = await node.start(['heal', '--watch', '--listen', at]).ended
    expect(code).toBe(1)
    expect(text).toContain(`--listen ${at} cannot be used`)
  })
})
