import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { attachDisk, detachDisks, makeImage, ON_DISK } from '../../helpers/disks.ts'
import { BINARY } from '../../helpers/node-directory.ts'

// A node that is booted with one kernel after another. Its disks are files of the machine, in the order of the steps.
const DISKS = '/exchange/disks'
const NODE = '/run/modekeep-lab'
const FS_TYPES = ['ext4', 'xfs', 'btrfs'] as const
const STEP = Number(process.env.MODEKEEP_LAB_STEP ?? 0)
/** The group that the last pod of a step leaves behind. */
const findLeftGroup = (step: number) => (step < 0 ? ON_DISK : 2000 + step)

const run = (command: string, ...args: string[]) => execFileSync(command, args, { encoding: 'utf8' })
const volumesOf = (fsType: string) => `${NODE}/volumes-${fsType}`

function call(verb: string, pod: string, options?: object) {
  const directory = `${NODE}/pods/${pod}/volumes/modekeep~fs/v`
  fs.mkdirSync(directory, { recursive: true })
  const args = [verb, directory, ...(options ? [JSON.stringify(options)] : [])]
  const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${NODE}/config.json` }
  return JSON.parse(execFileSync(BINARY, args, { env, encoding: 'utf8' }))
}

beforeAll(() => {
  if (STEP === 0) {
    fs.mkdirSync(DISKS)
    for (const fsType of FS_TYPES) makeImage(`${DISKS}/${fsType}.img`, fsType)
    makeImage(`${DISKS}/state.img`, 'ext4')
  }
  fs.mkdirSync(`${NODE}/state`, { recursive: true })
  // In another order at each step, so that each disk has another device.
  const disks = [...FS_TYPES, 'state']
  for (const disk of STEP % 2 === 0 ? disks : disks.toReversed()) {
    const directory = disk === 'state' ? `${NODE}/state` : volumesOf(disk)
    fs.mkdirSync(directory, { recursive: true })
    run('mount', attachDisk(`${DISKS}/${disk}.img`), directory)
  }
  // makeImage gives the root of a disk a group that may write.
  fs.chownSync(`${NODE}/state`, 0, 0)
  fs.chmodSync(`${NODE}/state`, 0o700)
  const allow = [{ sources: FS_TYPES.map((fsType) => `${volumesOf(fsType)}/*`) }]
  const config = { stateDir: `${NODE}/state/modekeep`, logFile: `${NODE}/modekeep.log`, allow }
  fs.writeFileSync(`${NODE}/config.json`, JSON.stringify(config))
})

afterAll(() => {
  for (const directory of [...FS_TYPES.map(volumesOf), `${NODE}/state`]) run('umount', directory)
  detachDisks()
})

describe('a node whose kernel is changed', () => {
  it.each(FS_TYPES)('a volume on %s that another kernel walked gets its first group back', (fsType) => {
    const source = `${volumesOf(fsType)}/sub`
    const readGroup = () => fs.statSync(`${source}/two`).gid
    const request = (fsGroup: number, restoreOnUnmount: string) => ({
      source,
      ownership: 'walk',
      restoreOnUnmount,
      'kubernetes.io/fsGroup': String(fsGroup),
    })
    expect(readGroup()).toBe(findLeftGroup(STEP - 1))
    expect(call('mount', 'a', request(3000, 'true'))).toEqual({ status: 'Success' })
    expect(readGroup()).toBe(3000)
    expect(call('unmount', 'a')).toEqual({ status: 'Success' })
    expect(readGroup()).toBe(ON_DISK)
    expect(call('mount', 'b', request(findLeftGroup(STEP), 'false'))).toEqual({ status: 'Success' })
    expect(call('unmount', 'b')).toEqual({ status: 'Success' })
    expect(readGroup()).toBe(findLeftGroup(STEP))
  })
})
