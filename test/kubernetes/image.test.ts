import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import about from '../../package.json' with { type: 'json' }
import { provideBusybox } from '../../scripts/fetch/packages.ts'
import { createDockerArchive } from '../../scripts/image/archive.ts'
import { createModekeepImage } from '../../scripts/image/modekeep.ts'
import { createShellRoot } from '../../scripts/image/shell.ts'
import type { TarEntry } from '../../src/cli/output/tar.ts'
import { requireProgram } from '../helpers/needs.ts'

const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-image-'))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

/** A static program that names these applets. */
function shell(): string {
  const path = join(place, 'busybox')
  const source = '#include <stdio.h>\nint main(void) { return puts("busybox\\nsh\\nvi\\nnsenter\\nsleep") < 0; }\n'
  execFileSync(requireProgram('gcc'), ['-static', '-x', 'c', '-o', path, '-'], { input: source })
  return path
}

const BINARY = resolve(import.meta.dirname, '../../dist/modekeep')
const cannotContain =
  process.getuid?.() === 0 && fs.existsSync(BINARY) ? '' : ' (skipped: needs root and npm run build)'
const PLUGINS = '/opt/plugins'

/** What the manifest gives the container "install", on a node whose plugin directory is $0.node: a root that is read-only. */
const CONTAINER = `
for place in host opt/plugins var/lib/modekeep var/log/modekeep etc/modekeep; do mkdir -p "$0/$place"; done
mkdir -p "$0.node"
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount --rbind / "$0/host"
mount --make-rslave "$0/host"
mount -o remount,bind,ro "$0/host"
for place in var/lib/modekeep var/log/modekeep etc/modekeep; do mount -t tmpfs -o mode=0755 tmpfs "$0/$place"; done
mount --bind "$0.node" "$0/opt/plugins"
mount -t proc proc "$0/proc"
mount --bind /dev "$0/dev"
exec "$@"`

function unpacked(archive: Buffer): string {
  const directory = fs.mkdtempSync(join(place, 'unpacked-'))
  execFileSync('tar', ['-xf', '-', '-C', directory], { input: archive })
  return directory
}

const ENTRIES: TarEntry[] = [{ path: 'file', bytes: Buffer.from('text'), mode: 0o755 }]

describe('a docker-archive', () => {
  it('names its images, and addresses each by its content', () => {
    const images = ['a:1', 'b:1'].map((name) => ({ name, command: ['/bin/sh'], labels: { name } }))
    const directory = unpacked(createDockerArchive(images, ENTRIES, 'x64'))
    const manifest = JSON.parse(fs.readFileSync(`${directory}/manifest.json`, 'utf8'))
    expect(manifest.map((one: { RepoTags: string[] }) => one.RepoTags)).toEqual([['a:1'], ['b:1']])
    for (const { Config, Layers } of manifest) {
      const bytes = fs.readFileSync(`${directory}/${Config}`)
      expect(Config).toBe(`${sha256(bytes)}.json`)
      const { architecture, rootfs } = JSON.parse(bytes.toString())
      expect(architecture).toBe('amd64')
      expect(rootfs.diff_ids).toEqual([`sha256:${sha256(fs.readFileSync(`${directory}/${Layers[0]}`))}`])
    }
  })
})

describe("the driver's container image", () => {
  it('has the driver, its commands and their shell, and the same bytes in every build', () => {
    const binary = join(place, 'binary')
    fs.writeFileSync(binary, 'the driver')
    const parts = { binary, busybox: shell(), licence: '' }
    const archive = createModekeepImage(parts)
    const directory = unpacked(archive)
    const [manifest] = JSON.parse(fs.readFileSync(`${directory}/manifest.json`, 'utf8'))
    expect(manifest.RepoTags).toEqual([`modekeep:${about.version}`])
    const root = unpacked(fs.readFileSync(`${directory}/layer.tar`))
    const source = (path: string) => fs.readFileSync(resolve(import.meta.dirname, '../..', path))
    for (const [path, from] of [
      ['bin/modekeep', 'driver/kubernetes/image/modekeep'],
      ['bin/on-node', 'driver/kubernetes/image/on-node'],
    ] as const) {
      expect(fs.readFileSync(`${root}/${path}`)).toEqual(source(from))
      expect(fs.statSync(`${root}/${path}`).mode & 0o777).toBe(0o755)
    }
    expect(fs.readFileSync(`${root}/modekeep`)).toEqual(fs.readFileSync(binary))
    expect(fs.readlinkSync(`${root}/bin/nsenter`)).toBe('busybox')
    expect(fs.readdirSync(`${root}/bin`)).toEqual(['busybox', 'modekeep', 'nsenter', 'on-node', 'sh', 'sleep'])
    expect(
      fs.readdirSync(root).filter((name) => fs.statSync(`${root}/${name}`, { throwIfNoEntry: false })?.isFile()),
    ).toEqual(['LICENSE', 'modekeep'])
    expect(createModekeepImage(parts).equals(archive)).toBe(true)
  })

  it.skipIf(cannotContain !== '')(
    `installs and uninstalls as the containers do, without a C library${cannotContain}`,
    { timeout: 300_000 },
    () => {
      const { busybox } = provideBusybox()
      const archive = unpacked(createModekeepImage({ binary: BINARY, busybox, licence: '' }))
      const root = unpacked(fs.readFileSync(`${archive}/layer.tar`))
      const contained = (verb: string, ...args: string[]) => {
        const command = ['/modekeep', verb, `--plugin-dir=${PLUGINS}`, ...args]
        // chroot(2) alone needs a capability.
        const as = ['setpriv', '--bounding-set=-all,+sys_chroot', '--no-new-privs', 'chroot', root, ...command]
        return spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-ec', CONTAINER, root, ...as], {
          encoding: 'utf8',
        })
      }
      expect(contained('install', '--node-root=/host')).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^installed {3}\/opt\/plugins\/modekeep~fs\/fs$/m),
        stderr: expect.stringMatching(/^warning: cannot write \/usr\/local\/sbin: no link there[^\n]*\n$/),
      })
      const kept = `${root}.node/modekeep~fs/fs`
      expect(fs.readFileSync(kept).equals(fs.readFileSync(BINARY))).toBe(true)
      expect(contained('install', '--node-root=/host').stdout).toMatch(/^unchanged /m)
      expect(contained('uninstall', '--dry-run')).toMatchObject({ status: 0 })
      fs.rmSync(`${root}.node`, { recursive: true })
    },
  )

  it('is not built with a shell that needs libraries', () => {
    expect(() => createShellRoot(process.execPath)).toThrow('is not static')
  })
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
