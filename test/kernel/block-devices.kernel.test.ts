import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { Handle } from '../../src/kernel/host.ts'
import { isDeviceOfMountRow } from '../../src/kernel/linux/block-devices.ts'
import { attachDisk, detachDisks } from '../helpers/disks.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

describe.skipIf(!isRoot)(addSkipReason('a disk in the mount table', cannotMountWith()), () => {
  it('is recognized by its number or name, but not by the source text of a FUSE mount', () => {
    const top = fs.mkdtempSync(`${tmpdir()}/modekeep-disk-`)
    fs.writeFileSync(`${top}/image`, Buffer.alloc(1 << 20))
    const name = attachDisk(`${top}/image`)
    const device = fs.openSync(name, 'r') as Handle
    try {
      const { rdev } = fs.fstatSync(device)
      const number = `${rdev >> 8}:${rdev & 0xff}`
      const isShown = (row: { device: string; fsType: string; source: string }) => isDeviceOfMountRow(device, row)
      expect(isShown({ device: number, fsType: 'ext4', source: 'another name' })).toBe(true)
      expect(isShown({ device: '0:99', fsType: 'btrfs', source: name })).toBe(true)
      expect(isShown({ device: '0:99', fsType: 'btrfs', source: '/dev/null' })).toBe(false)
      for (const fsType of ['fuse', 'fuse.sshfs']) expect(isShown({ device: '0:99', fsType, source: name })).toBe(false)
    } finally {
      fs.closeSync(device)
      detachDisks()
      fs.rmSync(top, { recursive: true })
    }
  })
})
