import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { closing } from '../../src/host/host.ts'
import { linuxHost } from '../../src/host/linux/index.ts'
import { DISK_TYPES, makeImage } from '../helpers/disks.ts'
import { isRoot } from '../helpers/stage.ts'

const title = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const { inodes } = linuxHost

function namesAt(path: string) {
  const handle = inodes.openLinkFree(path)
  using _ = closing(inodes, handle)
  return { id: inodes.fileSystemId(handle), former: inodes.formerFileSystemId(handle) }
}

describe.skipIf(!isRoot)(`the name of a file system${title}`, () => {
  let top: string
  let mounted: string
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-file-system-`)
    mounted = `${top}/mounted`
    fs.mkdirSync(mounted)
  })
  afterEach(() => {
    execFileSync('umount', [mounted])
    fs.rmSync(top, { recursive: true })
  })

  it.each(DISK_TYPES.filter((type) => type !== 'squashfs'))(
    'is the same for a directory and a regular file on %s',
    (type) => {
      makeImage(`${top}/image`, type)
      execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
      const { id, former } = namesAt(mounted)
      expect(namesAt(`${mounted}/one`)).toEqual({ id, former })
      if (type === 'btrfs') expect(id).toBe(former)
      else expect(id).toMatch(/^[0-9a-f]{32}$/)
    },
  )

  it('has the number of the subvolume on btrfs', () => {
    makeImage(`${top}/image`, 'btrfs')
    execFileSync('mount', ['-o', 'loop', `${top}/image`, mounted])
    for (const name of ['a', 'b']) execFileSync('btrfs', ['-q', 'subvolume', 'create', `${mounted}/${name}`])
    const names = ['', '/a', '/b'].map((name) => namesAt(`${mounted}${name}`))
    for (const { id, former } of names) expect(id).toBe(former)
    expect(new Set(names.map(({ id }) => id)).size).toBe(3)
  })
})
