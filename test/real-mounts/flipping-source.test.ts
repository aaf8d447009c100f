import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { listWatchedSourceDirectories } from '../../src/repair/watch.ts'
import { write } from '../helpers/atomic-writer.ts'
import { readInLoop } from '../helpers/reader.ts'
import { createRuntimeBind } from '../helpers/runtime-bind.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'

const FLIPS = 30

// As ConfigMaps and git-sync do it: files are links through one link, which is exchanged.
onKernelStages('a source with atomic updates', (open) => {
  let stage: Stage
  let source: string
  let directory: string
  beforeEach(() => {
    stage = open()
    onTestFinished(() => stage.close())
    source = `${stage.top}/volumes/config`
    directory = stage.podDirectory('a')
    stage.fs.mkdirSync(source)
    flip(0)
  })

  const flip = (turn: number) => write(source, { name: `turn ${turn}`, 'dir/name': `turn ${turn}` })
  const mount = (subPath: string) => stage.mount('a', { source, subPath })

  const ways: [string, (subPath: string) => Promise<void>][] = [
    ['the next mount call', mount],
    [
      'heal',
      async () => {
        expect(await stage.heal()).toMatchObject([
          { state: 'stale', action: 'replaced', reason: expect.stringContaining('now') },
        ])
      },
    ],
  ]

  it.each(ways)('is updated by %s, and a container can start again', async (_way, repair) => {
    const bind = createRuntimeBind()
    const target = `${stage.top}/container`
    stage.fs.writeFileSync(target, '')
    await mount('name')
    flip(1)
    expect(stage.layers('a')[0]?.root).toMatch(/\/\/deleted$/)
    expect(bind(directory, target)).toBe('ENOENT')
    await repair('name')
    expect(stage.fs.readFileSync(directory, 'utf8')).toBe('turn 1')
    expect(stage.layers('a')).toHaveLength(1)
    expect(bind(directory, target)).toBe('ok')
    execFileSync('umount', [target])
  })

  it.each(ways)('is replaced by %s without a gap for a reader', async (_way, repair) => {
    await mount('name')
    const reader = readInLoop(directory)
    await reader.more()
    for (let turn = 1; turn <= FLIPS; turn++) {
      flip(turn)
      await repair('name')
      await reader.more()
    }
    const seen = await reader.end()
    expect(seen.filter((what) => !/^turn \d+$/.test(what))).toEqual([])
    expect(seen.length).toBeGreaterThan(FLIPS / 2)
    expect(stage.layers('a')).toHaveLength(1)
  })

  it.each(ways)('has its directories updated by %s', async (_way, repair) => {
    await mount('dir')
    flip(1)
    expect(stage.fs.readdirSync(directory)).toEqual([])
    await repair('dir')
    expect(stage.fs.readFileSync(`${directory}/name`, 'utf8')).toBe('turn 1')
  })

  it('makes heal --watch react to an exchange of its link, also below the source', async () => {
    stage.fs.mkdirSync(`${source}/nested`)
    write(`${source}/nested`, { name: 'one' })
    await mount('nested/name')
    const watched = listWatchedSourceDirectories(stage.session())
    expect(watched).toContain(`${source}/nested`)
    expect(watched).toContain(source)
    expect(watched).toContain(`${stage.top}/volumes`)
  })

  it('is mounted completely during continuous updates', async () => {
    const flipper = spawn(process.execPath, [`${import.meta.dirname}/flip-in-loop.ts`, source])
    let said = ''
    flipper.stderr.on('data', (data) => {
      said += data
    })
    let flips = 0
    flipper.stdout.on('data', (data) => {
      flips += data.length
    })
    try {
      for (let call = 0; call < 100 || flips < 50; call++) {
        await mount('name')
        expect(stage.fs.readFileSync(directory, 'utf8')).toMatch(/^turn \d+$/)
        expect(stage.layers('a')).toHaveLength(1)
        expect([flipper.exitCode, flipper.signalCode, said]).toEqual([null, null, ''])
        await new Promise((resolve) => setImmediate(resolve))
      }
    } finally {
      flipper.kill('SIGKILL')
      await once(flipper, 'close')
    }
  })
})
