import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { listLoopDevices, makeImage, ON_DISK } from '../helpers/disks.ts'
import { cannotInject, killAtEach } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { listKillPoints, type TracedCall } from '../helpers/strace-text.ts'

const suiteTitle = `a call for an image that is killed at an operation on devices or mounts${cannotInject && ` (skipped: ${cannotInject})`}`
const TEN_MINUTES = 600_000

/** What makes, holds or ends devices and mounts. */
function isOfDevices({ name, text, failed }: TracedCall): boolean {
  if (failed) return false
  if (/^(fsopen|fsconfig|fsmount|mount_setattr|move_mount|umount2)$/.test(name)) return true
  // Each device of the node is asked for its status, those of other tests too.
  if (name === 'ioctl') return text.includes('LOOP_') && !text.includes('LOOP_GET_STATUS')
  return (name === 'openat' && text.includes('"/dev/loop')) || (name === 'close' && text.includes('</dev/loop'))
}

function stage() {
  const node = new BinaryNode()
  const config = JSON.parse(fs.readFileSync(`${node.top}/config.json`, 'utf8'))
  fs.writeFileSync(
    `${node.top}/config.json`,
    JSON.stringify({ ...config, allow: [{ ...config.allow[0], fsTypes: ['ext4'] }] }),
  )
  const image = `${node.volumes}/image`
  makeImage(image, 'ext4')
  const directory = node.podDirectory('a')
  const call = async (...args: string[]) => expect(await node.call(...args)).toEqual({ status: 'Success' })
  const mountWith = (more: Record<string, string>) => [
    'mount',
    directory,
    JSON.stringify({ source: image, 'kubernetes.io/fsType': 'ext4', ...more }),
  ]
  const choose = (calls: TracedCall[]) => listKillPoints(calls, isOfDevices, node.top)
  /** The kernel clears the device of a killed process a moment after the process has ended. */
  const devices = () => expect.poll(() => listLoopDevices(node.top), { timeout: 10_000 })
  const expectNoneLost = () => devices().toHaveLength(node.layers('a').length)
  const expectNone = () => devices().toEqual([])
  return { node, directory, call, mountWith, choose, expectNoneLost, expectNone }
}

describe.skipIf(cannotInject !== '')(suiteTitle, () => {
  it(
    'a mount killed at any such operation leaves a loop device only with a mount, and the next calls succeed',
    async () => {
      const { node, directory, call, mountWith, choose, expectNoneLost, expectNone } = stage()
      const args = mountWith({})
      const { tried, missed } = await killAtEach(node, {
        args,
        choose,
        prepare: () => call('unmount', directory),
        async check() {
          await expectNoneLost()
          await call(...args)
          expect(fs.readFileSync(`${directory}/one`, 'utf8')).toBe('content\n')
          expect(listLoopDevices(node.top)).toHaveLength(1)
          await call('unmount', directory)
          await expectNone()
        },
      })
      expect(missed).toEqual([])
      expect(tried).toBeGreaterThan(10)
      console.log(`mount of an image: ${tried} deaths, all survived`)
    },
    TEN_MINUTES,
  )

  it(
    'an unmount with a restore that is killed at any such operation is completed by the next unmount, and no loop device remains',
    async () => {
      const { node, directory, call, mountWith, choose, expectNoneLost, expectNone } = stage()
      const walk = { ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
      const { tried, missed } = await killAtEach(node, {
        args: ['unmount', directory],
        choose,
        prepare: () => call(...mountWith(walk)),
        async check() {
          await expectNoneLost()
          await call('unmount', directory)
          await expectNone()
          await call(...mountWith({}))
          expect(fs.statSync(`${directory}/one`).gid).toBe(ON_DISK)
          await call('unmount', directory)
        },
      })
      expect(missed).toEqual([])
      expect(tried).toBeGreaterThan(10)
      console.log(`unmount of an image: ${tried} deaths, all survived`)
    },
    TEN_MINUTES,
  )
})
