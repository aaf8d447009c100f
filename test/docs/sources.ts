import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import { attachDisk, createUdevLink, makeImage, ON_DISK } from '../helpers/disks.ts'
import { requireProgram } from '../helpers/needs.ts'
import { SshServer } from '../helpers/ssh-server.ts'
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

/** The content of a server for which this kernel has no client: a fake helper program mounts a tmpfs. */
const ON_SERVER = { one: 'content\n' }
const FILL = 'echo content > "$2/one"'

function writeDriver(program: string, script: string): void {
  const name = requireProgram(program)
  const real = ['/sbin', '/usr/sbin'].map((place) => `${place}/${name}`).find((path) => fs.existsSync(path))
  if (real === undefined) throw new Error(`${program} is not in /sbin`)
  overlayFile(fs.realpathSync(real), `#!/bin/sh\nset -e\n${script}\n`)
  onTestFinished(() => void execFileSync('umount', [fs.realpathSync(real)]))
}

/** Another content of a file, in this mount namespace only. */
function overlayFile(path: string, content: string): void {
  const file = `${fs.mkdtempSync(`${VOLUMES}/overlay-`)}/file`
  fs.writeFileSync(file, content, { mode: 0o755 })
  execFileSync('mount', ['--bind', file, path])
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
    const end = createUdevLink(sourceOf(volume), attachDisk(`${VOLUMES}/disk`))
    return { files: IN_IMAGE, end }
  },

  subvolume(volume) {
    makeImage(sourceOf(volume), 'btrfs')
    const place = `${VOLUMES}/mounted`
    fs.mkdirSync(place)
    execFileSync('mount', ['-o', 'loop', sourceOf(volume), place])
    fs.mkdirSync(`${place}/projects`)
    execFileSync(requireProgram('btrfs'), ['-q', 'subvolume', 'create', `${place}/projects/web`])
    directory(`${place}/projects/web`, { page: 'page\n' })
    execFileSync('umount', [place])
    return { files: { page: 'page\n' } }
  },

  nfs() {
    writeDriver('mount.nfs', `mount -t tmpfs -o mode=0755 export "$2" && ${FILL}`)
    return { files: ON_SERVER }
  },

  share() {
    // As the kernel shows a share: all of one group.
    writeDriver(
      'mount.cifs',
      `o=,$4,; g=\${o#*,gid=}; mount -t tmpfs -o "mode=0770,gid=\${g%%,*}" share "$2" && ${FILL} && chgrp -R "\${g%%,*}" "$2"`,
    )
    return { files: ON_SERVER, secrets: { username: 'bob', password: 'a,b"c!$d' } }
  },

  async remote(volume) {
    for (const program of ['sshfs', 'sshd']) requireProgram(program)
    overlayFile('/etc/hosts', '127.0.0.1 localhost files.example.com\n')
    execFileSync('mount', ['-t', 'tmpfs', 'srv', '/srv'])
    directory('/srv/files', { one: 'content\n' })
    const port = Number(/port=(\d+)/.exec(volume.flexVolume.options?.mountOptions ?? '')?.[1])
    const server = await SshServer.start(fs.mkdtempSync(`${VOLUMES}/ssh-`), port)
    return {
      files: { one: 'content\n' },
      secrets: {
        'ssh-privatekey': fs.readFileSync(server.key, 'utf8'),
        known_hosts: server.knownHosts.replaceAll('127.0.0.1', 'files.example.com'),
      },
      end() {
        execFileSync('umount', ['/srv'])
        execFileSync('umount', ['/etc/hosts'])
      },
    }
  },

  owners(volume) {
    requireProgram('bindfs')
    directory(sourceOf(volume), { old: 'old\n' })
    return { files: { old: 'old\n' } }
  },

  tools(volume) {
    requireProgram('squashfuse')
    makeImage(sourceOf(volume), 'squashfs')
    return { files: IN_IMAGE }
  },

  readonly(volume) {
    makeImage(sourceOf(volume), 'squashfs')
    return { files: IN_IMAGE }
  },
}
