import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { readDeviceNames } from '../../../src/kernel/linux/backing.ts'

let sys: string
beforeEach(() => {
  sys = fs.mkdtempSync(`${tmpdir()}/modekeep-sys-`)
  onTestFinished(() => fs.rmSync(sys, { recursive: true }))
})

/** Creates the directory of a device as in sysfs. */
function device(name: string, files: Record<string, string>, slaves: string[] = []): string {
  const directory = `${sys}/${name}`
  fs.mkdirSync(`${directory}/slaves`, { recursive: true })
  for (const [file, text] of Object.entries(files)) {
    fs.mkdirSync(dirname(`${directory}/${file}`), { recursive: true })
    fs.writeFileSync(`${directory}/${file}`, `${text}\n`)
  }
  for (const slave of slaves) fs.symlinkSync(`${sys}/${slave}`, `${directory}/slaves/${slave}`)
  return directory
}

describe('a disk is recognized by', () => {
  it.each<[string, Record<string, string>, string[]]>([
    ['its wwid and serial', { wwid: 'eui.01', serial: 'A  1' }, ['wwid eui.01', 'serial A 1']],
    ['those of its device', { 'device/wwid': 'naa.5', 'device/cid': 'fe01' }, ['wwid naa.5', 'cid fe01']],
    ['a repeated value, once', { wwid: 'naa.5', 'device/wwid': 'naa.5' }, ['wwid naa.5']],
    ['a serial of its controller, with its namespace', { 'device/serial': 'S1', nsid: '2' }, ['serial S1 namespace 2']],
    ['the name of its mapping', { 'dm/uuid': 'LVM-a' }, ['mapped LVM-a']],
    ['no empty names or zeroes', { serial: '', wwid: ' 0000 ', 'dm/uuid': '' }, []],
    ['no names of a connector', { serial: 'QM00001', wwid: 't10.ATA QEMU HARDDISK QM00002' }, []],
    ['no device number in the maps of kpartx', { 'dm/uuid': 'part1-devnode_7:0_Wh5pYvM' }, []],
    ['nothing with a line end', { serial: 'a\nb\u001bc' }, ['serial a b c']],
  ])('%s', (_what, files, identities) => {
    const shown = identities.length === 0 ? '' : `sda (${identities.join(', ')})`
    expect(readDeviceNames(device('sda', files))).toEqual({ shown, identities })
  })

  it('the identity of the whole disk and the partition number, for a partition', () => {
    device('sda', { wwid: 'naa.5' })
    const identities = ['wwid naa.5 partition 2']
    expect(readDeviceNames(device('sda/sda2', { partition: '2' }))).toEqual({ shown: 'sda2 (wwid naa.5)', identities })
  })

  it('the disks below it, if it has no name of its own', () => {
    device('sda', { wwid: 'naa.1' })
    device('sdb', { wwid: 'naa.2' })
    device('sdc', {})
    const raid = readDeviceNames(device('md0', {}, ['sda', 'sdb', 'sdc']))
    expect(raid).toEqual({
      shown: 'sda (wwid naa.1) and sdb (wwid naa.2)',
      identities: ['wwid naa.1', 'wwid naa.2'],
    })
    expect(readDeviceNames(device('dm-0', { 'dm/uuid': 'LVM-a' }, ['sda'])).identities).toEqual(['mapped LVM-a'])
  })

  it('nothing if devices refer to each other in a circle', () => {
    device('dm-1', {}, ['dm-2'])
    expect(readDeviceNames(device('dm-2', {}, ['dm-1']))).toEqual({ shown: '', identities: [] })
  })

  it('the image below it, for any name of its mapping', () => {
    device('loop99999', { 'loop/backing_file': '/gone', 'loop/offset': '0' })
    const mapped = device('dm-0', { 'dm/uuid': 'CRYPT-LUKS2-a' }, ['loop99999'])
    expect(readDeviceNames(mapped)).toEqual({
      shown: 'an image that only loop99999 shows',
      identities: ['image out of reach'],
    })
  })
})
