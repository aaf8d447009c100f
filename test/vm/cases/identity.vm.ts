import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { attachDisk, detachDisk, detachDisks, makeImage, ON_DISK, reattachDisk } from '../../helpers/disks.ts'
import { BinaryNode } from '../../helpers/kubelet-call.ts'

const SUCCESS = { status: 'Success' }

let mounted: string | undefined
afterEach(() => {
  if (mounted) execFileSync('umount', [mounted])
  mounted = undefined
  detachDisks()
})

describe('the identity of a file system on this kernel', () => {
  it.each(['ext4', 'xfs', 'btrfs'] as const)(
    'a volume on %s whose disk has another loop device for the next pod gets its first group back',
    async (fsType) => {
      const node = new BinaryNode()
      const image = `${node.top}/disk.img`
      makeImage(image, fsType)
      const mountDisk = (device: string) => {
        execFileSync('mount', [device, node.volumes])
        mounted = node.volumes
      }
      const source = `${node.volumes}/sub`
      const mountPod = (pod: string, group: string, restoreOnUnmount: string) => {
        const options = { source, ownership: 'walk', restoreOnUnmount, 'kubernetes.io/fsGroup': group }
        return node.call('mount', node.podDirectory(pod), JSON.stringify(options))
      }
      const first = attachDisk(image)
      mountDisk(first)
      expect(await mountPod('a', '2000', 'false')).toEqual(SUCCESS)
      expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
      execFileSync('umount', [node.volumes])
      detachDisk(first)
      const other = `${node.top}/other.img`
      fs.writeFileSync(other, Buffer.alloc(1 << 20))
      reattachDisk(first, other)
      const second = attachDisk(image)
      expect(second).not.toBe(first)
      mountDisk(second)
      expect(await mountPod('b', '3000', 'true')).toEqual(SUCCESS)
      expect(fs.statSync(`${source}/two`).gid).toBe(3000)
      expect(await node.call('unmount', node.podDirectory('b'))).toEqual(SUCCESS)
      expect(fs.statSync(`${source}/two`).gid).toBe(ON_DISK)
    },
  )
})
