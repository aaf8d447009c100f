import { afterEach, beforeEach, expect, it } from 'vitest'
import { restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { DIRENT_TYPE_DIRECTORY, DirentIterator } from '../../src/kernel/dirents.ts'
import { isDirectory } from '../../src/kernel/host.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, letTicksPass, listTree, makeTree } from '../helpers/tree.ts'

const TYPE_FILE = 8
// struct linux_dirent64 (getdents64(2)).
const TYPE = 18
const DIRECTORY = 'directory gone or replaced during the walk'
const FILE = 'gone or replaced during the walk'

onEveryStage('an inode that is moved or deleted during a walk', (open) => {
  let stage: Stage
  let source: string
  beforeEach(async () => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file p/a 0640 5', 'file q/a 0640 5', 'file temporary 0640 5'])
    await letTicksPass()
  })
  afterEach(() => stage.close())

  /**
   * Runs actions of the volume's user during the next walk.
   * @param act.listed runs when the names of the root have been read
   * @param act.entering runs just before the second directory is opened, when the first has been walked
   */
  function during(act: { listed?(): void; entering?(first: string, second: string): void }): void {
    const { inodes } = stage.host
    const entered: string[] = []
    let isListed = false
    stage.host = {
      ...stage.host,
      inodes: {
        ...inodes,
        readEntries(directory) {
          const bytes = inodes.readEntries(directory)
          // The file system in memory reports no types.
          for (const entries = new DirentIterator(bytes); entries.next(); ) {
            const type = isDirectory(inodes.statEntry(directory, entries.name)) ? DIRENT_TYPE_DIRECTORY : TYPE_FILE
            bytes[entries.place + TYPE] = type
          }
          if (!isListed) act.listed?.()
          isListed = true
          return bytes
        },
        openDirectory(parent, name) {
          const text = Buffer.from(name).toString()
          if (/^[pq]$/.test(text) && !entered.includes(text)) entered.push(text)
          const [first, second] = entered
          if (first !== undefined && second === text && entered.length === 2) {
            entered.push('')
            act.entering?.(first, second)
          }
          return inodes.openDirectory(parent, name)
        },
      },
    }
  }

  const mount = (pod: string) => stage.mount(pod, { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
  const record = () => {
    const [volume = ''] = listVolumesWithRecords(stage)
    return volumeRecords.read(stage, volume) ?? expect.unreachable()
  }
  const wrong = () => Object.entries(groups(listTree(stage.fs, source))).filter(([, group]) => group !== 2000)
  /** Moves the second directory to where the walk has been. */
  const moveBack = (first: string, second: string) =>
    stage.fs.renameSync(`${source}/${second}`, `${source}/${first}/moved`)

  it.each([
    ['is moved to a part that the walk has visited', moveBack],
    [
      'is moved there and replaced by another',
      (first: string, second: string) => {
        moveBack(first, second)
        stage.fs.mkdirSync(`${source}/${second}`)
      },
    ],
  ])('a directory that %s does not count as walked: the next mount walks that directory', async (_what, act) => {
    during({ entering: act })
    await mount('a')
    expect(stage.noted).toMatchObject({ inodes: { left: { [DIRECTORY]: { count: 1 } } } })
    expect(wrong().map(([path]) => path.replace(/^[pq]/, 'first'))).toEqual(['first/moved', 'first/moved/a'])
    expect(record()).toMatchObject({ complete: false, hasEnded: true })
    await mount('b')
    expect(wrong()).toEqual([])
    expect(record()).toMatchObject({ complete: true })
    expect(record().hasEnded).toBeUndefined()
  })

  it('a moved or deleted inode does not cause the replacement of an existing mount', async () => {
    during({ entering: moveBack })
    await mount('a')
    await mount('a')
    expect(stage.noted).toMatchObject({ decision: 'ready' })
    expect(await stage.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
    expect(wrong()).toHaveLength(2)
  })

  it('a file that is moved or deleted during a walk does not make the walk incomplete', async () => {
    during({ listed: () => stage.fs.unlinkSync(`${source}/temporary`) })
    await mount('a')
    expect(stage.noted).toMatchObject({ inodes: { left: { [FILE]: { count: 1 } } } })
    expect(record()).toMatchObject({ complete: true })
    await mount('b')
    expect(stage.noted).toMatchObject({ ownership: 'the root has the group already: not walked' })
  })

  it.each([
    ['a directory', { entering: moveBack }, DIRECTORY],
    ['a file', { listed: () => stage.fs.renameSync(`${source}/temporary`, `${source}/moved`) }, FILE],
  ])('%s that may have a record makes a restore incomplete', async (_what, act, reason) => {
    await mount('a')
    await stage.unmount('a')
    during(act)
    const { outcome, report } = await stage.byHand(source, restoreNodeDirectory)
    expect(outcome).toBe('unfinished')
    expect(report?.left[reason as typeof FILE]).toMatchObject({ count: 1 })
    expect(record()).toMatchObject({ complete: false })
    expect(await stage.byHand(source, restoreNodeDirectory)).toMatchObject({ outcome: 'restored' })
  })
})
