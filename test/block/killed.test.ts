import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loopsBelow, makeImage } from '../helpers/disks.ts'
import { cannotInject, killAtEach } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { killPoints, type TracedCall } from '../helpers/strace-text.ts'

const title = `a mount of an image killed at what it does to devices and mounts${cannotInject && ` (skipped: ${cannotInject})`}`
const TEN_MINUTES = 600_000

describe.skipIf(cannotInject !== '')(title, () => {
  it(
    'leaves a loop device only to a mount; the next calls find everything as new',
    async () => {
      const node = new BinaryNode()
      const config = JSON.parse(fs.readFileSync(`${node.top}/config.json`, 'utf8'))
      fs.writeFileSync(`${node.top}/config.json`, JSON.stringify({ ...config, allowedFsTypes: ['ext4'] }))
      const image = `${node.volumes}/image`
      makeImage(image, 'ext4')
      const directory = node.podDirectory('a')
      const options = JSON.stringify({ source: image, 'kubernetes.io/fsType': 'ext4' })
      const args = ['mount', directory, options]
      const chosen = ({ name, text, failed }: TracedCall) =>
        !failed &&
        (/^(fsopen|fsconfig|fsmount|mount_setattr|move_mount)$/.test(name) ||
          (name === 'ioctl' && /LOOP_/.test(text)) ||
          (name === 'openat' && /"\/dev\/loop/.test(text)) ||
          (name === 'close' && /<\/dev\/loop/.test(text)))

      const unmount = async () => expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
      const { tried, missed } = await killAtEach(node, {
        args,
        prepare: unmount as () => Promise<void>,
        choose: (calls) => killPoints(calls, chosen, node.top),
        async check() {
          expect(loopsBelow(node.top)).toHaveLength(node.layers('a').length)
          expect(await node.call(...args)).toEqual({ status: 'Success' })
          expect(fs.readFileSync(`${directory}/one`, 'utf8')).toBe('content\n')
          expect(loopsBelow(node.top)).toHaveLength(1)
          await unmount()
          expect(loopsBelow(node.top)).toEqual([])
        },
      })
      expect(missed).toEqual([])
      expect(tried).toBeGreaterThan(10)
      console.log(`mount of an image: ${tried} deaths, all survived`)
    },
    TEN_MINUTES,
  )
})
