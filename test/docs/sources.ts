import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { attachDisk, makeImage, ON_DISK, udevName } from '../helpers/disks.ts'
import type { Volume } from './example.ts'

/** What an example's volume needs to be there, and what its pods must see then. */
export interface Prepared {
  /** Content by path below the mount. */
  files: Record<string, string>
  secrets?: Record<string, string>
  /** Stops servers; files and mounts below VOLUMES are removed anyway. */
  end?: () => void | Promise<void>
}

/** A tmpfs of its own while the examples are run. */
export const VOLUMES = '/var/lib/modekeep/volumes'

const sourceOf = ({ flexVolume }: Volume) => flexVolume.options?.source ?? ''

function directory(path: string, files: Record<string, string>): void {
  for (const [name, content] of Object.entries(files)) {
    const file = `${path}/${name}`
    fs.mkdirSync(file.slice(0, file.lastIndexOf('/')), { recursive: true })
    fs.writeFileSync(file, content, { mode: 0o660 })
  }
  execFileSync('chgrp', ['-R', String(ON_DISK), path])
}

const IN_IMAGE = { one: 'content\n', 'sub/two': 'content\n' }

/** By the name of the example's volume: a new section of the page is one entry more. */
export const PREPARE: Readonly<Record<string, (volume: Volume) => Prepared | Promise<Prepared>>> = {
  directory(volume) {
    directory(sourceOf(volume), { test1: 'one\n' })
    return { files: { test1: 'one\n' } }
  },

  part(volume) {
    directory(sourceOf(volume), { 'v2/pages/index': 'page\n' })
    fs.symlinkSync('v2', `${sourceOf(volume)}/current`)
    return { files: { index: 'page\n' } }
  },

  memory: () => ({ files: {} }),

  shared(volume) {
    directory(sourceOf(volume), { both: 'both\n' })
    return { files: { both: 'both\n' } }
  },

  image(volume) {
    makeImage(sourceOf(volume), 'ext4')
    return { files: IN_IMAGE }
  },

  disk(volume) {
    makeImage(`${VOLUMES}/disk`, 'xfs')
    const end = udevName(sourceOf(volume), attachDisk(`${VOLUMES}/disk`))
    return { files: IN_IMAGE, end }
  },

  subvolume(volume) {
    makeImage(sourceOf(volume), 'btrfs')
    const place = `${VOLUMES}/mounted`
    fs.mkdirSync(place)
    execFileSync('mount', ['-o', 'loop', sourceOf(volume), place])
    fs.mkdirSync(`${place}/projects`)
    execFileSync('btrfs', ['-q', 'subvolume', 'create', `${place}/projects/web`])
    directory(`${place}/projects/web`, { page: 'page\n' })
    execFileSync('umount', [place])
    return { files: { page: 'page\n' } }
  },

  readonly(volume) {
    makeImage(sourceOf(volume), 'squashfs')
    return { files: IN_IMAGE }
  },
}
