import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import about from '../../package.json' with { type: 'json' }
import type { Entry } from '../../scripts/archive/tar.ts'
import { dockerArchive } from '../../scripts/image/archive.ts'
import { modekeepImage } from '../../scripts/image/modekeep.ts'
import { shellRoot } from '../../scripts/image/shell.ts'
import { needed } from '../helpers/needs.ts'

const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-image-'))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

/** A static program that names these applets. */
function shell(): string {
  const path = join(place, 'busybox')
  const source =
    '#include <stdio.h>\nint main(void) { return puts("busybox\\nsh\\nflock\\nnsenter\\nmodekeep") < 0; }\n'
  execFileSync(needed('gcc'), ['-static', '-x', 'c', '-o', path, '-'], { input: source })
  return path
}

function unpacked(archive: Buffer): string {
  const directory = fs.mkdtempSync(join(place, 'unpacked-'))
  execFileSync('tar', ['-xf', '-', '-C', directory], { input: archive })
  return directory
}

const ENTRIES: Entry[] = [{ path: 'file', bytes: Buffer.from('text'), mode: 0o755 }]

describe('a docker-archive', () => {
  it('names its images, and each by its content', () => {
    const images = ['a:1', 'b:1'].map((name) => ({ name, command: ['/bin/sh'], labels: { name } }))
    const directory = unpacked(dockerArchive(images, ENTRIES, 'x64'))
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

describe("the driver's image", () => {
  it('has the driver, its installer and its own commands in the place of applets, and is the same each time', () => {
    const binary = join(place, 'binary')
    fs.writeFileSync(binary, 'the driver')
    const parts = { binary, busybox: shell(), licence: '' }
    const archive = modekeepImage(parts)
    const directory = unpacked(archive)
    const [manifest] = JSON.parse(fs.readFileSync(`${directory}/manifest.json`, 'utf8'))
    expect(manifest.RepoTags).toEqual([`modekeep:${about.version}`])
    const root = unpacked(fs.readFileSync(`${directory}/layer.tar`))
    const source = (path: string) => fs.readFileSync(resolve(import.meta.dirname, '../..', path))
    for (const [path, from] of [
      ['install.sh', 'install.sh'],
      ['bin/flock', 'driver/kubernetes/image/flock'],
      ['bin/modekeep', 'driver/kubernetes/image/modekeep'],
      ['bin/on-node', 'driver/kubernetes/image/on-node'],
    ] as const) {
      expect(fs.readFileSync(`${root}/${path}`)).toEqual(source(from))
      expect(fs.statSync(`${root}/${path}`).mode & 0o777).toBe(0o755)
    }
    expect(fs.readFileSync(`${root}/modekeep`)).toEqual(fs.readFileSync(binary))
    expect(fs.readlinkSync(`${root}/bin/nsenter`)).toBe('busybox')
    expect(modekeepImage(parts).equals(archive)).toBe(true)
  })

  it('is not made with a shell that needs libraries', () => {
    expect(() => shellRoot(process.execPath)).toThrow('is not static')
  })
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
