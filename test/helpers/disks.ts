import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { requireProgram } from './needs.ts'

export type DiskType = 'ext4' | 'xfs' | 'btrfs' | 'squashfs'
export const DISK_TYPES: readonly DiskType[] = ['ext4', 'xfs', 'btrfs', 'squashfs']

const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

/** The smallest that mkfs makes. */
const SIZES = { ext4: '16M', xfs: '300M', btrfs: '110M' } as const

/** Group on disk of what an image holds: a directory `sub`, a file `one` with `content`, a file `sub/two`. */
export const ON_DISK = 100

/** Makes an image file with a few files of group ON_DISK in it. */
export function makeImage(image: string, fsType: DiskType, content = 'content\n'): void {
  const tree = fs.mkdtempSync(`${image}.tree-`)
  if (fsType === 'squashfs') fill(tree, content)
  else {
    run('truncate', '-s', SIZES[fsType], image)
    run(requireProgram(`mkfs.${fsType}`), ...(fsType === 'ext4' ? ['-q', '-F'] : ['-q', '-f']), image)
    // Held by a device of its own, which goes with the mount.
    run('mount', '-o', 'loop', image, tree)
    fs.rmSync(`${tree}/lost+found`, { recursive: true, force: true })
    fill(tree, content)
    run('umount', tree)
  }
  if (fsType === 'squashfs') run(requireProgram('mksquashfs'), tree, image, '-quiet', '-noappend', '-no-progress')
  fs.rmSync(tree, { recursive: true })
}

function fill(tree: string, content: string): void {
  fs.mkdirSync(`${tree}/sub`)
  fs.writeFileSync(`${tree}/one`, content)
  fs.writeFileSync(`${tree}/sub/two`, content)
  for (const path of ['', '/sub', '/one', '/sub/two']) fs.chownSync(`${tree}${path}`, 0, ON_DISK)
  for (const path of ['', '/sub']) fs.chmodSync(`${tree}${path}`, 0o775)
  for (const path of ['/one', '/sub/two']) fs.chmodSync(`${tree}${path}`, 0o664)
}

const attached: string[] = []

/** Makes an image a block device, as a disk of the node would be, until `detachDisks`; returns its name. */
export function attachDisk(image: string, ...options: string[]): string {
  const device = run('losetup', ...options, '--find', '--show', image)
  attached.push(device)
  return device
}

export function detachDisk(device: string): void {
  run('losetup', '--detach', device)
  attached.splice(attached.indexOf(device), 1)
}

/** Makes another file the content of a free device. Another test may have taken the device: then its file is the content. */
export function reattachDisk(device: string, file: string): void {
  try {
    run('losetup', device, file)
    attached.push(device)
  } catch (error) {
    if (!String(error).includes('busy')) throw error
  }
}

/** After their unmount. */
export function detachDisks(): void {
  for (const device of attached.splice(0)) run('losetup', '--detach', device)
}

/** Gives a device a name as udev would; the result takes it away, and the directories that were made for it. */
export function createUdevLink(name: string, device: string): () => void {
  const directory = name.slice(0, name.lastIndexOf('/'))
  fs.mkdirSync(directory, { recursive: true })
  fs.symlinkSync(`../..${device.slice('/dev'.length)}`, name)
  return () => {
    fs.rmSync(name)
    for (const place of [directory, '/dev/disk']) if (isEmpty(place)) fs.rmdirSync(place)
  }
}

function isEmpty(directory: string): boolean {
  return fs.existsSync(directory) && fs.readdirSync(directory).length === 0
}

/** The loop devices that show a file below `top`, one line each. */
export function listLoopDevices(top: string): string[] {
  return run('losetup', '--all', '--output', 'NAME,BACK-FILE', '--noheadings')
    .split('\n')
    .filter((line) => line.includes(`${top}/`))
}

const DETACHED_WITHIN_MS = 10_000

/**
 * Those that are still there after their unmount: the kernel clears a device once nobody has it open, not even another
 * test's call that asks each device for its file. Waits for that.
 */
export function listLeftLoopDevices(top: string): string[] {
  const end = performance.now() + DETACHED_WITHIN_MS
  for (;;) {
    const devices = listLoopDevices(top)
    if (devices.length === 0 || performance.now() > end) return devices
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  }
}
