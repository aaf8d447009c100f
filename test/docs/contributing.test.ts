import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import type { MountRequest } from '../../src/config/mount-request.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import type { MountContext, VolumeKind } from '../../src/volume/kind/kind.ts'
import { NO_FS_GROUP } from '../helpers/mount-records.ts'
import { rendered } from '../helpers/rendered.ts'
import { isRoot } from '../helpers/stage.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'
import { blocksOf } from './example.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const page = fs.readFileSync(`${ROOT}/docs/contributing.md`, 'utf8')
const [block] = blocksOf(page, 'ts')

/** The table of what to touch: what is added, and the files, of which some are named only by what they do. */
const rows = [...page.slice(page.indexOf('\nTo add …')).matchAll(/^\| (an? .*?) \| (.*) \|$/gm)].map(
  ([, what = '', files = '']) => ({ what, files: files.replaceAll(/ \([^)]*\)/g, '').split(', ') }),
)

/** The kind of the page, as if it lay where the page says. */
async function ramfsOfPage(): Promise<VolumeKind> {
  const file = `${import.meta.dirname}/ramfs-${process.pid}.tmp.ts`
  onTestFinished(() => fs.rmSync(file))
  fs.writeFileSync(file, (block?.text ?? '').replaceAll("from './", "from '../../src/volume/"))
  return (await import(file)).ramfsKind
}

const REQUEST: MountRequest = {
  directory: '/pod',
  source: { type: 'none' },
  fsType: 'ramfs',
  mountOptions: ['mode=0710', 'noexec'],
  readOnly: false,
  ownership: 'none',
  fsGroup: NO_FS_GROUP,
  restoreOnUnmount: false,
}
const MAKING = {
  request: REQUEST,
  source: undefined,
  group: undefined,
  secrets: new Map(),
  stateDir: '/state',
  staging: '',
  timeoutSeconds: 1,
  tmpfsMaxSize: '64m',
} as Partial<MountContext> as MountContext

describe('the table of files to change', () => {
  it('has rows that the test can parse', () => {
    expect(rows.map(({ what }) => what)).toEqual(expect.arrayContaining(['an option of a pod', 'a message']))
  })

  it.each(rows)('names at most four files for $what, and each file exists', ({ files }) => {
    expect(files.length).toBeLessThanOrEqual(4)
    const paths = files.flatMap((file) => [...file.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path))
    expect(paths).not.toEqual([])
    expect(paths.filter((path) => !fs.existsSync(`${ROOT}/${path}`))).toEqual([])
    expect(files.filter((file) => !file.includes('`') && !/^(the|its) file (that|where) /.test(file))).toEqual([])
  })
})

describe('the example volume type in the page', () => {
  it('accepts the documented options, and names unknown ones', async () => {
    const ramfs = await ramfsOfPage()
    expect(ramfs.faults(REQUEST, DEFAULT_CONFIG)).toEqual([])
    const request = { ...REQUEST, source: { type: 'local', path: '/a' } as const, mountOptions: ['size=1m'] }
    expect(rendered(ramfs.faults(request, DEFAULT_CONFIG))).toEqual([
      expect.stringContaining('ramfs takes'),
      expect.stringContaining('a ramfs has none'),
    ])
    const host = memoryHost(new MemoryWorld())
    expect(await ramfs.openTree({ ...MAKING, host })).toBeDefined()
  })

  it.skipIf(!isRoot)(`is mounted${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`, async () => {
    const ramfs = await ramfsOfPage()
    const tree = await ramfs.openTree({ ...MAKING, host: linuxHost })
    onTestFinished(() => linuxHost.inodes.close(tree))
    expect(linuxHost.inodes.stat(tree).mode & 0o7777).toBe(0o710)
  })
})
