import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import about from '../../package.json' with { type: 'json' }
import {
  createReleaseKubectlPlugin,
  KREW_MANIFEST_FILE,
  parseReleaseUrl,
  RELEASE_URL_VARIABLE,
} from '../../scripts/release/kubectl-plugin.ts'
import { EPOCH, unpack } from './made.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-release-kubectl-'))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

const URL_OF_RELEASE = 'https://example.com/modekeep/v1'
const files = createReleaseKubectlPlugin(about.version, EPOCH, URL_OF_RELEASE)
for (const { path, bytes } of files) fs.writeFileSync(join(place, path), bytes)
const archive = `modekeep-${about.version}-kubectl.tar.gz`
const manifest = parse(fs.readFileSync(join(place, KREW_MANIFEST_FILE), 'utf8'))

describe('the kubectl plugin of a release', () => {
  it('has the same bytes in every build, one directory, fixed modes, and the time of the sources', () => {
    expect(files.map(({ path }) => path)).toEqual([archive, KREW_MANIFEST_FILE])
    expect(createReleaseKubectlPlugin(about.version, EPOCH, URL_OF_RELEASE)).toEqual(files)
    const listed = execFileSync('tar', ['-tvzf', join(place, archive), '--utc', '--numeric-owner', '--full-time'], {
      encoding: 'utf8',
    })
    const rows = listed
      .trim()
      .split('\n')
      .map((row) => row.split(/\s+/))
    const top = `modekeep-${about.version}-kubectl`
    expect(rows.map(([mode, owner, , day, time, path]) => [mode, owner, day, time, path])).toEqual(
      [
        ['drwxr-xr-x', `${top}/`],
        ['-rw-r--r--', `${top}/LICENSE`],
        ['-rwxr-xr-x', `${top}/kubectl-modekeep`],
        ['-rwxr-xr-x', `${top}/kubectl_complete-modekeep`],
      ].map(([mode, path]) => [mode, '0/0', '2023-11-14', '22:13:20', path]),
    )
  })

  it('has the plugin, its completion and the licence of the sources', () => {
    unpack(join(place, archive), join(place, 'unpacked'))
    for (const [name, source] of [
      ['kubectl-modekeep', 'driver/kubernetes/kubectl-modekeep'],
      ['kubectl_complete-modekeep', 'driver/kubernetes/kubectl_complete-modekeep'],
      ['LICENSE', 'LICENSE'],
    ] as const) {
      const released = join(place, 'unpacked', `modekeep-${about.version}-kubectl`, name)
      expect(fs.readFileSync(released).equals(fs.readFileSync(join(ROOT, source)))).toBe(true)
    }
  })

  it('has no manifest without an address of the release', () => {
    expect(createReleaseKubectlPlugin(about.version, EPOCH, undefined)).toEqual(files.slice(0, 1))
  })
})

/** The rules of krew: ValidatePlugin in internal/index/validation of its sources, and those of the index for homepages. */
describe('the krew manifest of a release', () => {
  it('has the form of a Plugin, the version with a v, and descriptions', () => {
    expect(manifest).toMatchObject({
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: expect.stringMatching(/^[\w-]+$/) },
      spec: {
        version: `v${about.version}`,
        homepage: URL_OF_RELEASE,
        shortDescription: expect.stringMatching(/^[^\r\n]{1,50}$/),
        description: expect.stringContaining('any-volume'),
      },
    })
    expect(manifest.spec.version).toMatch(/^v\d+\.\d+\.\d+(-[\w.]+)?$/)
    expect(Object.keys(manifest.spec).sort()).toEqual([
      'caveats',
      'description',
      'homepage',
      'platforms',
      'shortDescription',
      'version',
    ])
    // krew calls the plugin by its name: kubectl modekeep.
    expect(manifest.metadata.name).toBe('modekeep')
  })

  it('has each platform once, with the address and the sum of the archive', () => {
    const sha256 = createHash('sha256')
      .update(fs.readFileSync(join(place, archive)))
      .digest('hex')
    const { platforms } = manifest.spec
    const selectors = platforms.map((platform: { selector: object }) => platform.selector)
    expect(selectors).toEqual(
      [
        ['linux', 'amd64'],
        ['linux', 'arm64'],
        ['darwin', 'amd64'],
        ['darwin', 'arm64'],
      ].map(([os, arch]) => ({ matchLabels: { os, arch } })),
    )
    for (const platform of platforms)
      expect(platform).toMatchObject({ uri: `${URL_OF_RELEASE}/${archive}`, sha256, bin: 'kubectl-modekeep' })
  })

  it('names files that the archive has, among them the program and the licence', () => {
    const listed = execFileSync('tar', ['-tzf', join(place, archive)], { encoding: 'utf8' })
      .trim()
      .split('\n')
    for (const { files: copied, bin } of manifest.spec.platforms) {
      expect(copied.length).toBeGreaterThan(0)
      for (const { from, to } of copied) {
        expect(listed).toContain(from)
        expect(to).toBe('.')
      }
      const names = copied.map(({ from }: { from: string }) => from.replace(/.*\//, ''))
      expect(names).toEqual(expect.arrayContaining([bin, 'LICENSE', 'kubectl_complete-modekeep']))
    }
  })

  it('has no alias and no anchor, and reads the same as JSON', () => {
    const text = fs.readFileSync(join(place, KREW_MANIFEST_FILE), 'utf8')
    expect(text).not.toMatch(/[&*]a\d/)
    expect(parse(JSON.stringify(manifest))).toEqual(manifest)
  })
})

describe('the address of a release', () => {
  it.each([
    ['', undefined],
    ['https://example.com/modekeep/v1/', URL_OF_RELEASE],
    [URL_OF_RELEASE, URL_OF_RELEASE],
  ])('%j is %j', (text, url) => {
    expect(parseReleaseUrl(text)).toBe(url)
  })

  it.each([
    'http://example.com/a',
    'example.com/a',
    'https://example.com/a?b=c',
    'https://u:p@example.com/',
    'https://a b/',
  ])('%j is refused with the name of the variable', (text) => {
    expect(() => parseReleaseUrl(text)).toThrow(
      `${RELEASE_URL_VARIABLE} is "${text.replace('u:p@', '')}": write the address`,
    )
  })

  it('that is invalid ends npm run release before it builds', () => {
    const env = { ...process.env, [RELEASE_URL_VARIABLE]: 'http://example.com' }
    const output = join(place, 'output')
    expect(
      spawnSync(process.execPath, [join(ROOT, 'scripts/release.ts'), '--output', output], { env, encoding: 'utf8' }),
    ).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(new RegExp(`^release: ${RELEASE_URL_VARIABLE} is "http://example.com": `)),
    })
    expect(fs.existsSync(output)).toBe(false)
  })
})
