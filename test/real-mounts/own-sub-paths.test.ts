import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { healSubPaths, listSubPathDirectories } from '../../src/repair/sub-paths.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { write } from '../helpers/atomic-writer.ts'
import { unmountBelow } from '../helpers/kubelet-pod.ts'
import { createRuntimeBind } from '../helpers/runtime-bind.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'

const STALE = 'its source was deleted when the volume changed'

onKernelStages("a container's subPath of modekeep's own volume after an atomic update", (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/source`
    fs.mkdirSync(source)
    onTestFinished(() => {
      unmountBelow(stage.top)
      stage.close()
    })
  })

  const heal = (dryRun = false) => healSubPaths(stage.session(), undefined, { dryRun })
  const read = (path: string) => fs.readFileSync(path, 'utf8')
  const rootOf = (path: string) => readMountLayers(stage.host, path).map(({ root }) => root)

  async function mountVolume(more: Record<string, string> = {}, end = 'modekeep~fs/v'): Promise<string> {
    const directory = `${stage.top}/pods/a/volumes/${end}`
    fs.mkdirSync(directory, { recursive: true })
    const request = parseFlexVolumeRequest(
      directory,
      JSON.stringify({ source, ...more }),
      stage.config,
      volumeKindLookup,
    )
    await mountPodVolume(stage.session(), request)
    return directory
  }

  /** Binds a part as kubelet does. */
  function bind(directory: string, subPath: string, options?: string): string {
    const top = `${stage.top}/pods/a/volume-subpaths/v/main`
    const path = `${top}/${fs.existsSync(top) ? fs.readdirSync(top).length : 0}`
    const part = fs.realpathSync(`${directory}/${subPath}`)
    fs.mkdirSync(dirname(path), { recursive: true })
    if (fs.statSync(part).isDirectory()) fs.mkdirSync(path)
    else fs.writeFileSync(path, '')
    execFileSync('mount', ['--bind', part, path])
    if (options) execFileSync('mount', ['-o', `remount,bind,${options}`, path])
    return path
  }

  function writeWorktree(name: string, content: string): void {
    fs.mkdirSync(`${source}/.worktrees/${name}/dir`, { recursive: true })
    fs.writeFileSync(`${source}/.worktrees/${name}/dir/file`, content)
  }

  /** As git-sync swaps its link, and removes the former worktree. */
  function swap(name: string, former?: string): void {
    fs.symlinkSync(`.worktrees/${name}`, `${source}/new`)
    fs.renameSync(`${source}/new`, `${source}/current`)
    if (former !== undefined) fs.rmSync(`${source}/.worktrees/${former}`, { recursive: true })
  }

  it.each(['modekeep~fs/v', 'kubernetes.io~csi/v/mount'])(
    "shows the current content of a ConfigMap's layout, and a runtime can bind it again: %s",
    async (end) => {
      write(source, { config: 'one', 'dir/config': 'one' })
      const directory = await mountVolume({}, end)
      const binds = ['config', 'dir', 'dir/config', '..data'].map((part) => bind(directory, part, 'ro,nosuid'))
      write(source, { config: 'two', 'dir/config': 'two' })
      const [file = '', above = '', inner = '', whole = ''] = binds
      const toBind = createRuntimeBind()
      fs.writeFileSync(`${stage.top}/file`, '')
      expect(toBind(file, `${stage.top}/file`)).toBe('ENOENT')
      const found = [
        [file, 'config'],
        [above, 'dir'],
        [inner, 'dir/config'],
        [whole, '..data'],
      ].map(([mountPoint, part]) => ({ mountPoint, source: `${directory}/${part}`, action: 'replaced', reason: STALE }))
      expect(heal(true)).toEqual(found)
      expect(read(file)).toBe('one')
      expect(heal()).toEqual(found)
      expect([read(file), read(`${above}/config`), read(inner), read(`${whole}/config`)]).toEqual(Array(4).fill('two'))
      for (const path of binds) {
        expect(readMountLayers(stage.host, path)).toMatchObject([{ options: expect.arrayContaining(['ro', 'nosuid']) }])
      }
      expect(toBind(file, `${stage.top}/file`)).toBe('ok')
      expect(heal()).toEqual([])
    },
  )

  it("shows the current worktree of git-sync's layout", async () => {
    writeWorktree('one', 'one')
    swap('one')
    const directory = await mountVolume()
    const bound = [bind(directory, 'current/dir/file'), bind(directory, 'current')]
    expect(listSubPathDirectories(stage.session(), undefined)).toEqual(
      ['.worktrees', '.worktrees/one', '.worktrees/one/dir'].map((name) => `${source}/${name}`),
    )
    writeWorktree('two', 'two')
    swap('two', 'one')
    expect(heal()).toMatchObject([
      { source: `${directory}/current/dir/file`, action: 'replaced' },
      { source: `${directory}/current`, action: 'replaced' },
    ])
    expect([read(bound[0] ?? ''), read(`${bound[1]}/dir/file`)]).toEqual(['two', 'two'])
  })

  it('shows the current content of a volume that is itself a subPath', async () => {
    writeWorktree('one', 'one')
    swap('one')
    const directory = await mountVolume({ subPath: 'current' })
    const bound = bind(directory, 'dir/file')
    writeWorktree('two', 'two')
    swap('two', 'one')
    expect(await stage.heal()).toMatchObject([{ action: 'replaced' }])
    expect(heal()).toMatchObject([{ source: `${directory}/dir/file`, action: 'replaced' }])
    expect(read(bound)).toBe('two')
  })

  it('shows the new file after another one was renamed over it', async () => {
    fs.writeFileSync(`${source}/file`, 'one')
    const directory = await mountVolume()
    const bound = bind(directory, 'file')
    fs.writeFileSync(`${source}/new`, 'two')
    fs.renameSync(`${source}/new`, `${source}/file`)
    expect(heal()).toMatchObject([{ source: `${directory}/file`, action: 'replaced' }])
    expect(read(bound)).toBe('two')
  })

  it('keeps the id mapping of its volume after a repair', async () => {
    write(source, { config: 'one' })
    fs.chownSync(source, 0, 100)
    const directory = await mountVolume({ ownership: 'idmap', 'kubernetes.io/fsGroup': '2000' })
    const bound = bind(directory, 'config')
    write(source, { config: 'two' })
    fs.chownSync(fs.realpathSync(`${source}/config`), 0, 100)
    expect(heal()).toMatchObject([{ action: 'replaced' }])
    expect([read(bound), fs.statSync(bound).gid]).toEqual(['two', 2000])
  })

  it.each<[string, (source: string) => void, string]>([
    ['its source was not replaced', () => {}, 'nothing in the volume has taken the place of ".worktrees/one/dir/file"'],
    [
      'its source may have two links',
      (at) => {
        fs.mkdirSync(`${at}/.worktrees/two/dir`, { recursive: true })
        for (const link of ['current', 'former']) fs.symlinkSync('.worktrees/two', `${at}/${link}`)
      },
      'may have taken the place of ".worktrees/one/dir/file"',
    ],
    [
      'a link leads out of the volume',
      (at) => fs.symlinkSync('../../../elsewhere/two', `${at}/current`),
      'nothing in the volume has taken the place',
    ],
  ])('is unchanged if %s', async (_, change, reason) => {
    writeWorktree('one', 'one')
    const directory = await mountVolume()
    const bound = bind(directory, '.worktrees/one/dir/file')
    const before = rootOf(bound)
    fs.rmSync(`${source}/.worktrees/one`, { recursive: true })
    change(source)
    expect(heal()).toMatchObject([{ action: 'none', reason: expect.stringContaining(reason) }])
    expect(rootOf(bound)).toEqual(before.map((root) => `${root}//deleted`))
  })
})
