import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ARCHITECTURES } from '../../scripts/build/runtime.ts'
import { provideDebianFile } from '../../scripts/fetch/debian.ts'
import { BUSYBOX_FILES } from '../../scripts/fetch/pinned.ts'
import { formatSha256Sums } from '../../scripts/release/contents.ts'
import { createReleaseImage } from '../../scripts/release/image.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { layoutOf } from './layout.ts'

const unavailable = explainUnavailable(() => ARCHITECTURES.map((arch) => provideDebianFile(BUSYBOX_FILES[arch])))
const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-release-image-'))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

const sum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const base = resolve(import.meta.dirname, '../../driver/kubernetes/base/daemonset.yaml')
const [, version = ''] = /image: modekeep:(\S+)/.exec(fs.readFileSync(base, 'utf8')) ?? []

describe.skipIf(unavailable)(`the release image${unavailable && ` (${unavailable})`}`, () => {
  it('has the executable and a pinned shell for each processor, the name in the manifests, and its digest as a sum', () => {
    const programs = ARCHITECTURES.map((arch) => ({ arch, program: Buffer.from(`modekeep for ${arch}`) }))
    const files = createReleaseImage(version, programs, 1_700_000_000)
    const name = `modekeep-${version}-image`
    expect(files.map(({ path }) => path)).toEqual([`${name}.tar`, `${name}.json`, `${name}.cdx.json`])
    for (const { path, bytes } of files) fs.writeFileSync(join(place, path), bytes)
    const { image, processors, root } = layoutOf(join(place, `modekeep-${version}-image.tar`), join(place, 'layout'))
    expect(image.annotations['io.containerd.image.name']).toBe(`docker.io/library/modekeep:${version}`)
    expect(formatSha256Sums(files)).toContain(
      `${image.digest.replace('sha256:', '')}  modekeep-${version}-image.json\n`,
    )
    expect(processors).toEqual(['amd64', 'arm64'])
    for (const { arch, program } of programs) {
      const at = root(arch)
      expect(fs.readFileSync(join(at, 'modekeep')).equals(program)).toBe(true)
      expect(sum(fs.readFileSync(join(at, 'bin/busybox')))).toBe(BUSYBOX_FILES[arch].sum)
      expect(fs.readlinkSync(join(at, 'bin/nsenter'))).toBe('busybox')
      expect(fs.readFileSync(join(at, 'LICENSE.busybox'), 'utf8')).toContain('GNU General Public License')
    }
    const { components, dependencies, metadata } = JSON.parse(fs.readFileSync(join(place, `${name}.cdx.json`), 'utf8'))
    expect(metadata).toMatchObject({ timestamp: '2023-11-14T22:13:20.000Z', component: { type: 'container' } })
    // The scripts beside them are files of the sources.
    const listed = (one: { name: string; hashes: { content: string }[] }) => `${one.name} ${one.hashes[0]?.content}`
    expect(components.map(listed)).toEqual(
      programs.flatMap(({ arch, program }) => [`modekeep ${sum(program)}`, `busybox ${BUSYBOX_FILES[arch].sum}`]),
    )
    const refs = components.map((one: Record<string, string>) => one['bom-ref'])
    expect([new Set(refs).size, dependencies[0].dependsOn]).toEqual([4, refs])
  })
})
