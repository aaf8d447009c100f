import { describe, expect, it } from 'vitest'
import { OfferedDeviceIds } from '../../../src/frontends/device-plugin/server.ts'
import { LINEAR, measureGrowth } from '../../helpers/work.ts'

const MOST = 10_000

const ids = (count: number) => Array.from({ length: count }, (_, index) => `fuse-${index}`)

describe('device IDs of a request to the device plugin', () => {
  it('a request that names more devices than there are is refused by their number', () => {
    const devices = new OfferedDeviceIds(3)
    expect(() => devices.assertOffered(['fuse-0', 'fuse-0', 'fuse-1', 'fuse-2'])).toThrow(
      'the request names 4 devices of modekeep/fuse, which has 3: name each device once',
    )
    const request = { availableDeviceIDs: ids(4), mustIncludeDeviceIDs: [], allocationSize: 1 }
    expect(() => devices.prefer(request)).toThrow('the request names 4 devices')
    expect(() => devices.prefer({ ...request, availableDeviceIDs: [], mustIncludeDeviceIDs: ids(4) })).toThrow(
      'the request names 4 devices',
    )
  })

  it('a request with more containers than there are devices is refused', () => {
    const devices = new OfferedDeviceIds(3)
    devices.assertContainers([1, 2, 3])
    expect(() => devices.assertContainers([1, 2, 3, 4])).toThrow(
      'the request has 4 containers, and modekeep/fuse has 3 devices: send smaller requests',
    )
  })

  it('a refusal shows the beginning of at most five unknown IDs', () => {
    const unknown = Array.from({ length: 100 }, (_, index) => `${index}${'x'.repeat(100_000)}`)
    const message = (() => {
      try {
        new OfferedDeviceIds(MOST).assertOffered(unknown)
        return ''
      } catch (error) {
        return (error as Error).message
      }
    })()
    expect(message).toContain('"4x')
    expect(message).not.toContain('"5x')
    expect(message.length).toBeLessThan(5000)
  })

  it.each([
    ['as many devices as there are', (size: number) => ids(size)],
    ['unknown devices', (size: number) => ids(size).map((id) => `${id}-unknown`)],
    ['one device many times', (size: number) => Array<string>(size).fill('fuse-0')],
    ['one long ID', (size: number) => ['x'.repeat(size * 100)]],
  ])('the work on a request is linear: %s', (_, request) => {
    const prepare = (size: number) => {
      const devices = new OfferedDeviceIds(size)
      const availableDeviceIDs = request(size)
      return () => {
        try {
          devices.assertOffered(availableDeviceIDs)
          devices.prefer({ availableDeviceIDs, mustIncludeDeviceIDs: [], allocationSize: 1 })
        } catch {
          // What is refused is work too.
        }
      }
    }
    expect(measureGrowth(MOST, prepare)).toBeLessThan(LINEAR)
  })
})
