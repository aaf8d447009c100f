import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { deferHandleClose } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { attachDisk, detachDisks } from '../helpers/disks.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const { blocks, inodes } = linuxHost

function at(path: string, look = blocks.backingOf) {
  const handle = inodes.openLinkFree(path)
  using _ = deferHandleClose(inodes, handle)
  return look(handle)
}

describe.skipIf(!isRoot)(`the backing device or image of a file system${suiteTitle}`, () => {
  let top: string
  let place: string
  const image = (name: string) => `${top}/${name}`
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-backing-`)
    place = `${top}/place`
    fs.mkdirSync(place)
  })
  afterEach(() => {
    // Unmounts the mounts that a failed test left behind.
    spawnSync('umount', ['--quiet', place])
    detachDisks()
    fs.rmSync(top, { recursive: true })
  })

  const make = (fsType: 'ext4' | 'btrfs', ...names: string[]) => {
    for (const name of names) execFileSync('truncate', ['-s', fsType === 'ext4' ? '16M' : '120M', image(name)])
    execFileSync(requireProgram(`mkfs.${fsType}`), ['-q', ...names.map(image)])
  }
  const mounted = (device: string, ...options: string[]) => {
    execFileSync('mount', [...options, device, place])
    const found = at(place)
    execFileSync('umount', [place])
    return found
  }
  const common = (one: { identities: string[] }, other: { identities: string[] }) =>
    one.identities.filter((identity) => other.identities.includes(identity)).length

  it('is the same image for any loop device and after a rename, but a different image for a copy', () => {
    make('ext4', 'a')
    const first = mounted(image('a'), '-o', 'loop')
    expect(first.identities).toHaveLength(1)
    expect(first.shown).toContain(`image "${image('a')}" (inode ${fs.statSync(image('a')).ino}`)
    attachDisk(image('a'))
    expect(mounted(attachDisk(image('a'))).identities).toEqual(first.identities)
    expect(at(image('a'), blocks.asBacking).identities).toEqual(first.identities)
    fs.copyFileSync(image('a'), image('copy'))
    fs.renameSync(image('a'), image('b\nc'))
    expect(mounted(image('b\nc'), '-o', 'loop').identities).toEqual(first.identities)
    expect(common(mounted(image('copy'), '-o', 'loop'), first)).toBe(0)
  })

  it('is unknown for a deleted image, also if another file now has the name of the image', () => {
    make('ext4', 'a')
    const device = attachDisk(image('a'))
    const before = mounted(device)
    fs.rmSync(image('a'))
    expect(common(mounted(device), before)).toBe(0)
    make('ext4', 'a')
    expect(common(mounted(device), before)).toBe(0)
  })

  it('differs if the file system begins at another offset in the image', () => {
    make('ext4', 'a')
    execFileSync('sh', ['-c', 'cat "$1" "$1" > "$2"', 'sh', image('a'), image('twice')])
    const first = mounted(attachDisk(image('twice'), '--sizelimit', String(2 ** 24)))
    expect(common(mounted(attachDisk(image('twice'), '--offset', String(2 ** 24))), first)).toBe(0)
  })

  it('differs for a copied image inside a copied image', () => {
    make('ext4', 'outer')
    make('ext4', 'inner')
    const outer = `${top}/outer-place`
    fs.mkdirSync(outer)
    const within = (file: string, work: () => void) => {
      execFileSync('mount', ['-o', 'loop', file, outer])
      try {
        work()
      } finally {
        execFileSync('umount', [outer])
      }
    }
    const found: ReturnType<typeof mounted>[] = []
    const look = () => found.push(mounted(`${outer}/inner`, '-o', 'loop'))
    execFileSync('truncate', ['-s', '64M', image('outer')])
    execFileSync('mkfs.ext4', ['-q', '-F', image('outer')])
    within(image('outer'), () => fs.copyFileSync(image('inner'), `${outer}/inner`))
    within(image('outer'), look)
    fs.copyFileSync(image('outer'), image('forged'))
    within(image('forged'), look)
    within(image('outer'), look)
    const [first, forged, again] = found
    if (!first || !forged || !again) throw new Error('not inspected')
    const [inner] = first.shown.split(' in image ')
    expect(forged.shown).toContain(`${inner} in image "${image('forged')}" (inode `)
    expect(common(forged, first)).toBe(0)
    expect(common(again, first)).toBe(1)
  })

  it('is every device of a btrfs, recognized by the remaining ones, and the same for its subvolumes', () => {
    make('btrfs', 'a', 'b')
    const one = attachDisk(image('a'))
    const two = attachDisk(image('b'))
    execFileSync('btrfs', ['device', 'scan', one, two], { stdio: 'ignore' })
    execFileSync('mount', [one, place])
    const both = at(place)
    expect(both.identities).toHaveLength(2)
    expect(both.shown).toContain(' and ')
    execFileSync('btrfs', ['subvolume', 'create', `${place}/sub`], { stdio: 'ignore' })
    expect(at(`${place}/sub`)).toEqual(both)
    execFileSync('btrfs', ['balance', 'start', '-f', '-mconvert=single', '-dconvert=single', place], {
      stdio: 'ignore',
    })
    execFileSync('btrfs', ['device', 'remove', one, place], { stdio: 'ignore' })
    const left = at(place)
    expect([left.identities.length, common(left, both)]).toEqual([1, 1])
    execFileSync('umount', [place])
  })

  it('is unknown for memory and kernel file systems, but their location is known', () => {
    execFileSync('mount', ['-t', 'tmpfs', 'none', place])
    expect(at(place)).toEqual({ place: expect.stringMatching(/^0:\d+$/), shown: '', identities: [] })
    expect(at('/proc').identities).toEqual([])
    execFileSync('umount', [place])
  })
})
