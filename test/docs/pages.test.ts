import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseConfig } from '../../src/config/config.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { blocksOf, kubeletOptions, type Volume } from './example.ts'
import { anchorsOf, linksOf, PAGES, pathsOf, ROOT } from './pages.ts'

const { scripts, version } = JSON.parse(fs.readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Every volume of modekeep in a value, at any depth. */
function volumesIn(value: unknown): Volume[] {
  if (typeof value !== 'object' || value === null) return []
  const found = Object.values(value).flatMap(volumesIn)
  const { flexVolume, name = 'data' } = value as Partial<Volume>
  return flexVolume?.driver === 'modekeep/fs' ? [{ name, flexVolume }, ...found] : found
}

describe('the documentation pages', () => {
  it('are found with their links and paths', () => {
    expect(PAGES.map(({ path }) => path)).toEqual(expect.arrayContaining(['README.md', 'docs/options.md']))
    expect(PAGES.flatMap(linksOf).length).toBeGreaterThan(50)
    expect(PAGES.flatMap(pathsOf).length).toBeGreaterThan(20)
    expect(anchorsOf("# Kubelet's own keys\n```sh\n# none\n```\n## `a`, b\n")).toEqual(['kubelets-own-keys', 'a-b'])
  })

  it('CHANGELOG.md begins with the version of the executable', () => {
    const changes = PAGES.find(({ path }) => path === 'CHANGELOG.md')?.text ?? ''
    expect(/^## (.*)$/m.exec(changes)?.[1]?.split(' - ')[0]).toBe(version)
  })

  it('in docs/ are all linked from the README', () => {
    const [readme] = PAGES
    const linked = readme ? linksOf(readme).map(({ file }) => file) : []
    const docs = PAGES.map(({ path }) => path).filter((path) => path.startsWith('docs/'))
    expect(docs.filter((path) => !linked.includes(path))).toEqual([])
  })
})

describe.each(PAGES.map((page) => [page.path, page] as const))('%s', (_path, page) => {
  it('has links to existing pages and headings', () => {
    const broken = linksOf(page).filter(({ file, anchor }) => {
      if (!fs.existsSync(join(ROOT, file))) return true
      return anchor !== undefined && !anchorsOf(fs.readFileSync(join(ROOT, file), 'utf8')).includes(anchor)
    })
    expect(broken.map(({ link }) => link)).toEqual([])
  })

  it('names files that exist', () => {
    expect(pathsOf(page).filter((path) => !fs.existsSync(join(ROOT, path)))).toEqual([])
  })

  it('names npm scripts that exist', () => {
    const named = [...page.text.matchAll(/\bnpm (?:run )?([a-z0-9:]+)/g)]
      .filter(([text, name]) => text.includes(' run ') || name === 'start' || name === 'test')
      .map(([, name = '']) => name)
    expect(named.filter((name) => !(name in scripts))).toEqual([])
  })

  it('has valid JSON and YAML', () => {
    for (const { text } of blocksOf(page.text, 'json')) expect(() => JSON.parse(text), text).not.toThrow()
    for (const { text } of blocksOf(page.text, 'yaml')) {
      expect(
        parseAllDocuments(text).flatMap(({ errors }) => errors),
        text,
      ).toEqual([])
    }
  })

  it("has volumes that a node with the page's configuration would mount", () => {
    const [shown] = blocksOf(page.text, 'json')
    const { config, faults } = parseConfig(shown?.text ?? '{}', 'the page')
    const volumes = blocksOf(page.text, 'yaml').flatMap(({ text }) =>
      parseAllDocuments(text).flatMap((document) => volumesIn(document.toJS())),
    )
    if (volumes.length > 0) expect(faults).toEqual([])
    for (const volume of volumes) {
      const pod = { metadata: { name: 'pod' }, spec: { securityContext: { fsGroup: 2000 }, volumes: [volume] } }
      const options = JSON.stringify(kubeletOptions(pod, volume, {}))
      expect(() => parseFlexVolumeRequest('/pod', options, config, volumeKindLookup)).not.toThrow()
    }
  })
})
