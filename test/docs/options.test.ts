import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MOUNT_FLAG_TEXTS, MOUNT_OPTION_TEXTS, VOLUME_KIND_TEXTS } from '../../scripts/docs/kind-descriptions.ts'
import { DOCUMENTED_FS_TYPES, listOptionExamples } from '../../scripts/docs/options-kinds.ts'
import { createOptionsPage } from '../../scripts/docs/options-page.ts'
import { CONFIG_TEXTS, KUBELET_TEXTS, OPTION_TEXTS } from '../../scripts/docs/request-descriptions.ts'
import { CONFIG_KEY_SCHEMAS, parseConfig } from '../../src/config/config.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest, volumeOptionsSchema } from '../../src/config/request.ts'
import { MOUNT_OPTIONS_BY_NAME } from '../../src/kernel/mount-table/mount-flags.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'

const ROOT = resolve(import.meta.dirname, '../..')

describe('docs/options.md', () => {
  it('equals the output of "npm run docs"', () => {
    expect(fs.readFileSync(`${ROOT}/docs/options.md`, 'utf8')).toBe(createOptionsPage())
  })

  it('describes every existing key, and no other', () => {
    expect({ ...OPTION_TEXTS, ...KUBELET_TEXTS }).toHaveProperty('ownership')
    expect(Object.keys({ ...OPTION_TEXTS, ...KUBELET_TEXTS }).sort()).toEqual(
      Object.keys(volumeOptionsSchema.shape).sort(),
    )
    expect(Object.keys(CONFIG_TEXTS).sort()).toEqual(Object.keys(CONFIG_KEY_SCHEMAS).sort())
    expect(Object.keys(MOUNT_FLAG_TEXTS).sort()).toEqual([...MOUNT_OPTIONS_BY_NAME.keys()].sort())
    expect(Object.keys(VOLUME_KIND_TEXTS).sort()).toEqual([...DOCUMENTED_FS_TYPES].sort())
  })

  it.each(DOCUMENTED_FS_TYPES)('describes every mount option of %s, and no other', (fsType) => {
    const names = listOptionExamples(fsType).map(({ name }) => name)
    expect(Object.keys(MOUNT_OPTION_TEXTS[fsType] ?? {}).sort()).toEqual(names.sort())
  })

  it.each(Object.entries(OPTION_TEXTS))('has an example of %s that is valid for a pod', (key, { example }) => {
    const needed = key === 'ownership' ? {} : { ownership: 'auto' }
    const options = { source: '/srv/volumes/data', ...needed, [key]: example }
    const config = { ...DEFAULT_CONFIG, allow: [{ sources: ['/srv/volumes/*'] }] }
    expect(() => parseFlexVolumeRequest('/pod', JSON.stringify(options), config, volumeKindLookup)).not.toThrow()
  })

  it.each(Object.entries(CONFIG_TEXTS))('has an example of %s that is valid for a node', (key, { example }) => {
    const { config, faults } = parseConfig(JSON.stringify({ [key]: example }), 'config.json')
    expect(faults).toEqual([])
    expect(config).toMatchObject({ [key]: example })
  })

  it("does not affect kubelet's calls: no bundled file loads the descriptions", () => {
    const files = ['src', 'driver'].flatMap((folder) =>
      fs
        .readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => `${folder}/${name}`),
    )
    const loading = files.filter((file) => /from '.*descriptions\.ts'/.test(fs.readFileSync(join(ROOT, file), 'utf8')))
    expect(loading).toEqual([])
  })
})
