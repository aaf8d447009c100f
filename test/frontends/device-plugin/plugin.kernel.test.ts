import * as fs from 'node:fs'
import * as net from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { describe, expect, it } from 'vitest'
import { Stage, until } from './stage.ts'

describe('a device plugin', () => {
  it('listens on the socket that it then registers for the resource modekeep/fuse', async () => {
    await using stage = new Stage()
    stage.plugin()
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 1)
    expect(stage.kubelet.registrations).toEqual([
      {
        version: 'v1beta1',
        endpoint: stage.sockets()[0],
        resource_name: 'modekeep/fuse',
        options: { pre_start_required: false, get_preferred_allocation_available: false },
        listening: true,
      },
    ])
  })

  it('waits for a kubelet that starts later, without a socket of its own', async () => {
    await using stage = new Stage()
    fs.mkdirSync(stage.directory)
    const plugin = stage.plugin()
    await until(() => plugin.named('health').length === 1)
    expect(stage.sockets()).toEqual([])
    await stage.kubelet.start()
    await until(() => stage.kubelet.lists.length === 1)
  })

  it('lists the configured number of devices under stable names', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    stage.plugin({ count: 3 })
    await until(() => stage.kubelet.lists.length === 1)
    const device = (ID: string) => ({ ID, health: 'Healthy', topology: null })
    expect(stage.kubelet.lists[0]).toEqual([device('fuse-0'), device('fuse-1'), device('fuse-2')])
  })

  it('sends a list of ten thousand devices to kubelet', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    stage.plugin({ count: 10_000 })
    await until(() => stage.kubelet.lists.length === 1)
    expect(stage.kubelet.lists[0]).toHaveLength(10_000)
    expect(stage.kubelet.lists[0]?.every(({ ID }) => ID.length <= 63)).toBe(true)
  })

  it("removes its socket and ends kubelet's watch when the plugin ends", async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    const plugin = stage.plugin()
    await until(() => stage.kubelet.lists.length === 1)
    await plugin.end()
    expect(fs.readdirSync(stage.directory)).toEqual(['kubelet.sock'])
    await until(() => stage.kubelet.ended === 1)
  })

  it('continues after connections are interrupted at any point', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    stage.plugin()
    await until(() => stage.kubelet.lists.length === 1)
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
    const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings])
    for (let size = 0; size <= preface.length; size++) {
      const socket = net.connect(`${stage.directory}/${stage.sockets()[0]}`)
      await new Promise((resolve) => socket.once('connect', resolve))
      // Closed with an answer unread: ECONNRESET for the other side.
      await new Promise((resolve) => socket.write(preface.subarray(0, size), resolve))
      socket.destroy()
    }
    expect(await stage.kubelet.call('PreStartContainer', { devicesIDs: ['fuse-0'] })).toEqual({})
    expect(stage.kubelet.ended).toBe(0)
  })

  it('ends while a client without a request is connected', async () => {
    await using stage = new Stage()
    await stage.kubelet.start()
    const plugin = stage.plugin()
    await until(() => stage.kubelet.lists.length === 1)
    const silent = net.connect(`${stage.directory}/${stage.sockets()[0]}`)
    await new Promise((resolve) => silent.once('connect', resolve))
    const closed = new Promise((resolve) => silent.once('close', resolve))
    silent.resume()
    await plugin.end()
    await closed
    expect(stage.sockets()).toEqual([])
  })
})

for (const authority of ['localhost', undefined]) {
  describe(`a device plugin, called by a kubelet that passes ${authority ?? 'the path of the socket'} as authority,`, () => {
    async function registered() {
      const stage = new Stage()
      stage.kubelet.authority = authority
      await stage.kubelet.start()
      const plugin = stage.plugin()
      await until(() => stage.kubelet.lists.length === 1)
      return Object.assign(stage, { running: plugin })
    }
    const refusal = (stage: Stage, method: string, request: object) =>
      stage.kubelet.call(method, request).then(
        () => expect.unreachable(),
        ({ code, details }: grpc.ServiceError) => ({ code, details }),
      )

    it('grants /dev/fuse once to each container for any number of requested devices', async () => {
      await using stage = await registered()
      const request = { container_requests: [{ devicesIDs: ['fuse-1'] }, { devicesIDs: ['fuse-0', 'fuse-2'] }] }
      const container = {
        devices: [{ container_path: '/dev/fuse', host_path: '/dev/null', permissions: 'rwm' }],
        mounts: [],
      }
      const reply = await stage.kubelet.call('Allocate', request)
      expect(reply).toMatchObject({ container_responses: [container, container] })
      expect(stage.running.named('allocated')).toMatchObject([{ devices: ['fuse-1', 'fuse-0', 'fuse-2'] }])
    })

    it('refuses a device that was never offered, and names the device', async () => {
      await using stage = await registered()
      for (const [method, request] of [
        ['Allocate', { container_requests: [{ devicesIDs: ['fuse-0', 'fuse-3'] }] }],
        ['PreStartContainer', { devicesIDs: ['fuse-3'] }],
        ['GetPreferredAllocation', { container_requests: [{ available_deviceIDs: ['fuse-3'], allocation_size: 1 }] }],
      ] as const) {
        expect(await refusal(stage, method, request)).toEqual({
          code: grpc.status.INVALID_ARGUMENT,
          details: 'modekeep/fuse has no device "fuse-3"',
        })
      }
      expect(stage.running.named('refused')).toHaveLength(3)
    })

    it('declares that GetPreferredAllocation and PreStartContainer need not be called, and replies to both', async () => {
      await using stage = await registered()
      const { call } = stage.kubelet
      expect(await call.call(stage.kubelet, 'GetDevicePluginOptions', {})).toEqual({
        pre_start_required: false,
        get_preferred_allocation_available: false,
      })
      expect(await stage.kubelet.call('PreStartContainer', { devicesIDs: ['fuse-0'] })).toEqual({})
      const request = {
        container_requests: [
          {
            available_deviceIDs: ['fuse-0', 'fuse-1', 'fuse-2'],
            must_include_deviceIDs: ['fuse-2'],
            allocation_size: 2,
          },
        ],
      }
      expect(await stage.kubelet.call('GetPreferredAllocation', request)).toEqual({
        container_responses: [{ deviceIDs: ['fuse-2', 'fuse-0'] }],
      })
    })

    it('refuses to prefer more devices than exist, or fewer than the request requires', async () => {
      await using stage = await registered()
      for (const allocation_size of [-1, 0, 3]) {
        const request = {
          container_requests: [
            { available_deviceIDs: ['fuse-0', 'fuse-1'], must_include_deviceIDs: ['fuse-1'], allocation_size },
          ],
        }
        expect((await refusal(stage, 'GetPreferredAllocation', request)).code).toBe(grpc.status.INVALID_ARGUMENT)
      }
    })
  })
}
