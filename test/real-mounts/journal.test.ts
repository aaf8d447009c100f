import { afterEach, beforeEach, expect, it } from 'vitest'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'

onKernelStages('an unusable journal', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file a 0640 5', 'file b 4755 6'])
  })
  afterEach(() => stage.close())

  const asked = (more: Record<string, string> = {}) => ({
    source,
    ownership: 'walk',
    'kubernetes.io/fsGroup': '2000',
    restoreOnUnmount: 'true',
    ...more,
  })
  const now = () => listTree(stage.fs, source)

  function journal(): string {
    const volumes = `${stage.config.stateDir}/ownership`
    const [volume] = stage.fs.readdirSync(volumes)
    return `${volumes}/${volume}/journal.db`
  }

  function dropWal(): void {
    for (const suffix of ['-wal', '-shm']) stage.fs.rmSync(`${journal()}${suffix}`, { force: true })
  }

  async function mountedOnce(): Promise<void> {
    await stage.mount('a', asked())
    stage.reboot()
    // What a later walk finds: the root has lost the group, so it must walk again.
    stage.fs.chownSync(source, 0, 0)
  }

  const DAMAGES: [string, () => void][] = [
    [
      'overwritten with text',
      () => stage.fs.writeFileSync(journal(), 'this is no database, and a long enough text to be read as one'),
    ],
    ['truncated to half', () => stage.fs.truncateSync(journal(), Math.floor(stage.fs.statSync(journal()).size / 2))],
    [
      'torn in a page',
      () => {
        const fd = stage.fs.openSync(journal(), 'r+')
        stage.fs.writeSync(fd, Buffer.alloc(64, 0xff), 0, 64, 0)
        stage.fs.closeSync(fd)
      },
    ],
    [
      'a directory',
      () => {
        stage.fs.rmSync(journal())
        stage.fs.mkdirSync(journal())
      },
    ],
  ]

  it.each(DAMAGES)('%s: the walk changes nothing and names the file, and the unmount succeeds', async (_, damage) => {
    await mountedOnce()
    dropWal()
    damage()
    const before = now()
    await expect(stage.mount('a', asked())).rejects.toThrow(/ownership journal .*journal\.db cannot be used/)
    expect(now()).toEqual(before)
    expect(stage.layers('a')).toEqual([])
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
  })

  it('of another volume is refused', async () => {
    await mountedOnce()
    const foreign = stage.fs.readFileSync(journal())
    const other = `${stage.top}/volumes/other`
    makeTree(stage.fs, other, ['file a 0640 5'])
    stage.fs.rmSync(`${stage.config.stateDir}/ownership`, { recursive: true })
    await stage.mount('b', { ...asked({ source: other }), restoreOnUnmount: 'false' })
    await stage.unmount('b')
    stage.fs.chownSync(other, 0, 0)
    dropWal()
    stage.fs.writeFileSync(journal(), foreign)
    const before = listTree(stage.fs, other)
    await expect(stage.mount('b', asked({ source: other }))).rejects.toThrow(/it belongs to volume/)
    expect(listTree(stage.fs, other)).toEqual(before)
  })

  it('at an unmount with a restore: the pod unmounts, the volume is unchanged, and the log has the reason', async () => {
    await stage.mount('a', asked())
    const before = now()
    dropWal()
    stage.fs.writeFileSync(journal(), 'this is no database, and a long enough text to be read as one')
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
    expect(now()).toEqual(before)
    expect(stage.warnings).toEqual([
      expect.stringMatching(/volume not restored, tried again at its next unmount: the ownership journal/),
    ])
  })

  it('is found after a reboot, and restores the first state', async () => {
    await stage.mount('a', asked())
    stage.reboot()
    await stage.mount('a', asked())
    await stage.unmount('a')
    expect(groups(now())).toEqual({ '.': 0, a: 5, b: 6 })
    expect(modes(now())).toEqual({ '.': '0755', a: '0640', b: '4755' })
  })
})
