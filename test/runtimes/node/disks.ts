import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { RuntimeNode } from './node.ts'
import { CsiVolume } from './volumes.ts'

/** The smallest that mkfs makes. */
const DISKS = { ext4: '32M', xfs: '300M', btrfs: '110M' } as const
export type DiskType = keyof typeof DISKS

/** Who has what a test's volumes hold: a group that no pod asks for. */
export const ON_DISK = 1500

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })

/** A staged volume of another driver, on a disk of its own. */
export function diskVolume(node: RuntimeNode, handle: string, type: DiskType, size: string = DISKS[type]): CsiVolume {
  const image = `${node.place}/${handle}.${type}`
  run('truncate', '-s', size, image)
  run(`mkfs.${type}`, ...(type === 'ext4' ? ['-q', '-F'] : ['-q', '-f']), image)
  const volume = new CsiVolume(handle, ['-o', 'loop', '-t', type, image]).stage()
  fill(volume.path)
  return volume
}

/** A directory with a few files of group ON_DISK, which its group may read and write and others may not see. */
export function fill(directory: string): void {
  fs.rmSync(`${directory}/lost+found`, { recursive: true, force: true })
  fs.mkdirSync(`${directory}/sub`)
  fs.writeFileSync(`${directory}/one`, 'one\n')
  fs.writeFileSync(`${directory}/sub/two`, 'two\n')
  for (const path of ['one', 'sub', 'sub/two', '.']) fs.chownSync(`${directory}/${path}`, 0, ON_DISK)
  for (const path of ['.', 'sub']) fs.chmodSync(`${directory}/${path}`, 0o2770)
  for (const path of ['one', 'sub/two']) fs.chmodSync(`${directory}/${path}`, 0o660)
}
