import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { provideDebianLibraries } from '../../scripts/build/libraries.ts'
import { ARCHITECTURES, type Architecture, DEBIAN_ARCHITECTURES } from '../../scripts/build/runtime.ts'
import { provideDebianFile } from '../../scripts/fetch/debian.ts'
import { BUSYBOX_FILES, GCC_LIBRARY_FILES, GCC_LICENCE_FILES, GLIBC_LICENCE_FILES } from '../../scripts/fetch/pinned.ts'
import { KREW_MANIFEST_FILE, RELEASE_URL_VARIABLE } from '../../scripts/release/kubectl-plugin.ts'
import { SIGNING_KEY_VARIABLE } from '../../scripts/release/signature.ts'
import { linksOf } from '../docs/pages.ts'
import { fullSized } from '../helpers/size.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { layoutOf } from './layout.ts'
import { EPOCH, type Made, makeRelease, unpack } from './made.ts'
import { newSigner, type Signer } from './signer.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const own = process.arch as Architecture
/** The other processor's goes the same way, but for the executable, which test/binary/other-processor.test.ts has. */
const made: readonly Architecture[] = fullSized<readonly Architecture[]>([own], ARCHITECTURES)

const read = (...path: string[]) => fs.readFileSync(join(...path))
const sum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

const unavailable = explainUnavailable(() => {
  for (const arch of made) provideDebianLibraries(arch)
  for (const files of [GCC_LICENCE_FILES, GLIBC_LICENCE_FILES])
    for (const licence of Object.values(files)) provideDebianFile(licence)
  for (const arch of made) provideDebianFile(BUSYBOX_FILES[arch])
})

let first: Made
let second: Made
let unpacked: string
let signer: Signer
beforeAll(() => {
  if (unavailable) return
  signer = newSigner()
  const url = { [RELEASE_URL_VARIABLE]: 'https://example.com/modekeep' }
  first = makeRelease('a', '022', { TZ: 'UTC', ...url }, made)
  second = makeRelease(
    'another/much longer/path',
    '077',
    { TZ: 'Pacific/Auckland', LANG: 'de_DE.UTF-8', USER: 'x', [SIGNING_KEY_VARIABLE]: signer.key, ...url },
    made,
  )
  const name = `modekeep-${JSON.parse(String(read(ROOT, 'package.json'))).version}-linux-${DEBIAN_ARCHITECTURES[own]}`
  unpack(join(first.output, `${name}.tar.gz`), dirname(first.output))
  unpacked = join(dirname(first.output), name)
}, 1_500_000)
afterAll(() => {
  first?.remove()
  second?.remove()
  signer?.remove()
})

function filesBelow(directory: string): string[] {
  const names = fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => fs.statSync(join(directory, name)).isFile()).sort()
}

describe.skipIf(unavailable)(`a release${unavailable && ` (${unavailable})`}`, () => {
  it('has the same bytes if it is made in other directories and at other times', () => {
    const names = filesBelow(first.output)
    // The image, its index and bill of materials, both forms of the chart, the kubectl plugin, its manifest, and the sums.
    expect(names).toHaveLength(2 * made.length + 8)
    expect(names).toContain(KREW_MANIFEST_FILE)
    // The second one is signed.
    expect(filesBelow(second.output)).toEqual([...names, 'SHA256SUMS.sig'].sort())
    expect(names.filter((name) => !read(first.output, name).equals(read(second.output, name)))).toEqual([])
  })

  it('is signed if a key is given, and reports a missing signature otherwise', () => {
    const sums = String(read(second.output, 'SHA256SUMS'))
    expect(signer.verify(join(second.output, 'SHA256SUMS.sig'), sums)).toMatchObject({ status: 0 })
    expect(
      signer.verify(
        join(second.output, 'SHA256SUMS.sig'),
        sums.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
      ).status,
    ).not.toBe(0)
    expect(first.said).toContain('not signed: MODEKEEP_RELEASE_KEY names no key')
    expect(second.said).not.toContain('not signed')
  })

  it.each([
    ['of the archives', () => first.output],
    ['of the files in one archive', () => unpacked],
  ])('has the sums %s of all its files', (_what, place) => {
    const text = String(read(place(), 'SHA256SUMS'))
    expect(
      execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: place(), encoding: 'utf8' }),
    ).not.toContain('FAILED')
    const named = text
      .trim()
      .split('\n')
      .map((line) => line.slice(66))
    expect(named).toEqual(filesBelow(place()).filter((name) => name !== 'SHA256SUMS'))
  })

  it('unpacks into one directory with fixed modes and times', () => {
    const archive = join(first.output, `${basename(unpacked)}.tar.gz`)
    const lines = execFileSync('tar', ['-tvzf', archive, '--numeric-owner', '--full-time', '--utc'], {
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC' },
    })
    const rows = lines
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/))
    expect(new Set(rows.map(([, owner]) => owner))).toEqual(new Set(['0/0']))
    expect(new Set(rows.map(([, , , day, time]) => `${day}T${time}`))).toEqual(
      new Set([new Date(EPOCH * 1000).toISOString().slice(0, 19)]),
    )
    expect(new Set(rows.map(([mode]) => mode))).toEqual(new Set(['drwxr-xr-x', '-rwxr-xr-x', '-rw-r--r--']))
    expect(rows.filter(([mode]) => mode === '-rwxr-xr-x').map((row) => row.at(-1))).toEqual(
      [
        'driver/kubernetes/kubectl-modekeep',
        'driver/kubernetes/kubectl_complete-modekeep',
        'install.sh',
        'modekeep',
      ].map((name) => `${basename(unpacked)}/${name}`),
    )
    expect(
      rows.every((row) =>
        row
          .slice(5)
          .join(' ')
          .startsWith(`${basename(unpacked)}/`),
      ),
    ).toBe(true)
  })

  it('has the files for a node and a cluster, and the licences of its contents', () => {
    const files = filesBelow(unpacked)
    const manifests = filesBelow(join(ROOT, 'driver/kubernetes')).map((name) => `driver/kubernetes/${name}`)
    const licences = [
      'LICENSE',
      'licenses/node.txt',
      'licenses/npm.txt',
      ...['COPYRIGHT', 'GPL-3'].map((name) => `licenses/gcc/${name}`),
      ...['CHANGES', 'COPYRIGHT', 'LGPL-2.1'].map((name) => `licenses/glibc/${name}`),
    ]
    expect(files).toEqual(
      expect.arrayContaining([
        'README.md',
        'CHANGELOG.md',
        'docs/volumes.md',
        'sbom.cdx.json',
        'driver/observability/dashboard.json',
        ...manifests,
        ...licences,
      ]),
    )
    for (const name of licences) expect(read(unpacked, name).length, name).toBeGreaterThan(500)
    expect(String(read(unpacked, 'LICENSE'))).toContain('Apache License')
    expect(String(read(unpacked, 'licenses/gcc/GPL-3'))).toContain('GNU GENERAL PUBLIC LICENSE')
    expect(String(read(unpacked, 'licenses/gcc/COPYRIGHT'))).toContain('\nGCC RUNTIME LIBRARY EXCEPTION\n')
  })

  it('has the same executable in its image', () => {
    const archive = join(first.output, basename(unpacked).replace(/-linux-.*/, '-image.tar'))
    const { root } = layoutOf(archive, join(dirname(unpacked), 'image'))
    expect(read(root(own), 'modekeep').equals(read(unpacked, 'modekeep'))).toBe(true)
  })

  it('has all files that its pages link to', () => {
    const pages = filesBelow(unpacked).filter((path) => path.endsWith('.md'))
    const links = pages.flatMap((path) => linksOf({ path, text: String(read(unpacked, path)) }))
    expect(links.length).toBeGreaterThan(50)
    expect(links.filter(({ file }) => !fs.existsSync(join(unpacked, file)))).toEqual([])
  })

  it('has the completions and the man page that modekeep prints', () => {
    const modekeep = join(unpacked, 'modekeep')
    const printed: [string, string[]][] = [
      ['completions/modekeep.bash', ['completion', 'bash']],
      ['completions/_modekeep', ['completion', 'zsh']],
      ['completions/modekeep.fish', ['completion', 'fish']],
      ['man/modekeep.8', ['help', '--man']],
    ]
    for (const [path, args] of printed)
      expect(String(read(unpacked, path))).toBe(execFileSync(modekeep, args, { encoding: 'utf8' }))
  })

  it('is installed by its own script, and refused with one changed byte', () => {
    const install = () => {
      const args = ['install.sh', '--root', join(dirname(unpacked), 'root'), '--plugin-dir', '/plugins']
      return spawnSync('sh', args, { cwd: unpacked, encoding: 'utf8', env: { PATH: process.env.PATH } })
    }
    fs.mkdirSync(join(dirname(unpacked), 'root'), { recursive: true })
    if (process.getuid?.() === 0) {
      expect(install()).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^installed/m) })
      expect(read(dirname(unpacked), 'root/plugins/modekeep~fs/fs').equals(read(unpacked, 'modekeep'))).toBe(true)
    }
    const modekeep = join(unpacked, 'modekeep')
    const bytes = read(modekeep)
    try {
      fs.writeFileSync(modekeep, Buffer.concat([bytes.subarray(0, -1), Buffer.from([(bytes.at(-1) ?? 0) ^ 1])]))
      const { status, stderr } = spawnSync(
        'sh',
        ['install.sh', '--dry-run', '--root', dirname(unpacked), '--plugin-dir', '/plugins'],
        { cwd: unpacked, encoding: 'utf8' },
      )
      expect({ status, stderr }).toEqual({
        status: 1,
        stderr: expect.stringContaining('SHA256SUMS asks for: fetch it again'),
      })
    } finally {
      fs.writeFileSync(modekeep, bytes)
    }
  })
})

describe.skipIf(unavailable)(`the bill of materials${unavailable && ` (${unavailable})`}`, () => {
  const bom = () => JSON.parse(String(read(unpacked, 'sbom.cdx.json')))
  const componentOf = (name: string) => bom().components.find((component: { name: string }) => component.name === name)

  it('equals the file next to the archive, and has the time of the sources', () => {
    expect(read(first.output, `${basename(unpacked)}.cdx.json`).equals(read(unpacked, 'sbom.cdx.json'))).toBe(true)
    expect(bom()).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      version: 1,
      serialNumber: expect.stringMatching(
        /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
      metadata: {
        timestamp: new Date(EPOCH * 1000).toISOString(),
        component: { name: 'modekeep', hashes: [{ content: sum(read(unpacked, 'modekeep')) }] },
      },
    })
  })

  it('names Node with its parts, and the libraries with their origin', () => {
    const node = componentOf('node')
    expect(node).toMatchObject({ version: process.versions.node, licenses: [{ license: { id: 'MIT' } }] })
    const parts = new Map(
      node.components.map(({ name, version }: { name: string; version: string }) => [name, version]),
    )
    for (const part of ['openssl', 'sqlite', 'uv', 'v8', 'zlib'] as const)
      expect(parts.get(part)).toBe(process.versions[part])
    for (const library of ['libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1'] as const) {
      const { version, hashes, purl } = componentOf(library)
      const { archive, sum: pinned } = GCC_LIBRARY_FILES[own][library]
      expect(hashes[0].content).toBe(pinned)
      expect(
        read(unpacked, 'modekeep').includes(fs.readFileSync(provideDebianFile(GCC_LIBRARY_FILES[own][library]))),
      ).toBe(true)
      const [, debian = ''] = /^pkg:deb\/debian\/([^@]+)@/.exec(purl) ?? []
      expect(basename(archive.address)).toBe(
        `${decodeURIComponent(debian)}_${version}_${DEBIAN_ARCHITECTURES[own]}.deb`,
      )
    }
  })

  it('names the C library with its version, its source package and each of its files', () => {
    const { glibcVersion, libraries, interpreter } = provideDebianLibraries(own)
    const glibc = componentOf('glibc')
    expect(glibc).toMatchObject({
      version: glibcVersion,
      licenses: [{ license: { id: 'LGPL-2.1-or-later' } }],
      purl: expect.stringMatching(/^pkg:deb\/debian\/libc6@[^?]*\?.*&upstream=glibc$/),
    })
    const carried = new Map([...libraries, interpreter].map(({ soname, bytes }) => [soname, sum(bytes)]))
    const named = glibc.components.map(({ name, hashes }: { name: string; hashes: { content: string }[] }) => [
      name,
      hashes[0]?.content,
    ])
    expect(named).toHaveLength(5)
    for (const [name, content] of named) expect(content, name).toBe(carried.get(name))
    expect(execFileSync(join(unpacked, 'modekeep'), ['version'], { encoding: 'utf8' })).toContain(
      `(glibc ${glibcVersion})`,
    )
    expect(String(read(unpacked, 'licenses/glibc/CHANGES'))).toContain(`source package glibc ${glibcVersion}`)
  })

  it('names exactly the bundled npm packages, with locked versions and shipped licences', () => {
    const { packages } = JSON.parse(String(read(ROOT, 'package-lock.json')))
    const names = bom().components.flatMap(
      ({ purl }: { purl: string }) =>
        /^pkg:npm\/(.*)@([^@]*)$/.exec(purl)?.slice(1).map(decodeURIComponent).join(' ') ?? [],
    )
    expect(names).toEqual(
      expect.arrayContaining(
        ['@grpc/grpc-js', 'execa', 'zod'].map((name) => `${name} ${packages[`node_modules/${name}`].version}`),
      ),
    )
    const licences = String(read(unpacked, 'licenses/npm.txt'))
    for (const named of names) {
      const [name = '', version = ''] = named.split(' ')
      expect(packages[`node_modules/${name}`], name).toMatchObject({ version })
      expect(packages[`node_modules/${name}`].dev, `${name} is for development only`).toBeUndefined()
      expect(licences).toContain(`\n${name} ${version} (`)
    }
    expect(licences).not.toContain('(undefined)')
  })

  it('has no reference without a target, and no duplicate', () => {
    const { components, dependencies, metadata } = bom()
    const refs = [metadata.component, ...components].map((component) => component['bom-ref'])
    expect(new Set(refs).size).toBe(refs.length)
    expect(dependencies.map(({ ref }: { ref: string }) => ref)).toEqual(refs)
    expect(dependencies[0].dependsOn).toEqual(refs.slice(1))
  })
})
