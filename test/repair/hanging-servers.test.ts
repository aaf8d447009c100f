import { beforeEach, describe, expect, it } from 'vitest'
import { checkConfiguration } from '../../src/cli/doctor/configuration.ts'
import { checkRecordedVolumes } from '../../src/cli/doctor/records.ts'
import { applyGroupToNodeDirectory, openNodeDirectoryVolume } from '../../src/fsgroup/volume-by-hand.ts'
import { collectGarbage, refuseToForgetVolume } from '../../src/repair/garbage.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'

const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch' } as const

describe('an unresponsive server', () => {
  let stage: Stage
  let share: string
  /** What was asked, and what was opened of it. */
  let asked: string[]
  let opened: string[]
  beforeEach(() => {
    stage = memoryStage()
    share = `${stage.top}/volumes/share`
    makeTree(stage.fs, share, ['file data/a 0640 5', 'file data/b 0640 5'])
    asked = []
    opened = []
  })

  /** From now on. */
  function hang(): void {
    const { mounts, inodes, daemons } = stage.host
    const root = mounts.table().split(' ')[0]
    const table = () => `${mounts.table().trimEnd()}\n99999 ${root} 0:99 / ${share} rw - nfs4 host:/share rw\n`
    const seen = <T>(path: string, open: (path: string) => T): T => {
      if (path.startsWith(share)) opened.push(path)
      return open(path)
    }
    stage.host = {
      ...stage.host,
      mounts: { ...mounts, table },
      inodes: {
        ...inodes,
        openLinkFree: (path) => seen(path, inodes.openLinkFree),
        openTrusted: (path) => seen(path, inodes.openTrusted),
      },
      daemons: {
        ...daemons,
        answers: async (_parent, name) => {
          asked.push(`/${Buffer.from(name)}`)
          return false
        },
      },
    }
  }

  const only = () => listVolumesWithRecords(stage)[0] ?? expect.unreachable()
  const walk = (directory: string) =>
    stage.byHand(directory, (session, volume) => applyGroupToNodeDirectory(session, volume, FS_GROUP))
  const garbage = async (isDry: boolean) =>
    (await collectGarbage(stage.session(), { isDry, forget: undefined })).map(({ action, reason }) => [action, reason])

  it('is not queried for the directory argument of a command, and the message names the directory', async () => {
    hang()
    await expect(openNodeDirectoryVolume(stage.session(), `${share}/data`, { set: 0, clear: 0 })).rejects.toThrow(
      `directory "${share}/data" does not respond (the server or the daemon of its file system hangs, or a process keeps a directory of the path locked): repair that on the node, then call this again`,
    )
    expect([asked, opened]).toEqual([[`${share}/data`], []])
  })

  it.each([true, false])('keeps the records of a volume that may have been deleted (dry: %s)', async (isDry) => {
    await walk(`${share}/data`)
    const record = volumeRecords.read(stage, only()) ?? expect.unreachable()
    volumeRecords.write(stage, { ...record, asked: `${share}/link` })
    stage.fs.rmSync(`${share}/data`, { recursive: true })
    expect(await garbage(true)).toEqual([['removed', expect.stringContaining('was deleted')]])
    hang()
    expect(await garbage(isDry)).toEqual([['kept', expect.stringContaining(`${share}/data does not respond`)]])
    await expect(refuseToForgetVolume(stage.session(), only())).rejects.toThrow(`"${share}/data" does not respond`)
    expect(opened).toEqual([])
    expect(listVolumesWithRecords(stage)).toHaveLength(1)
  })

  it('keeps the records of inodes that may still exist in the volume', async () => {
    const { chown } = stage.host.inodes
    stage.host.inodes.chown = () => {
      throw new Killed()
    }
    await expect(walk(`${share}/data`)).rejects.toThrow(Killed)
    stage.host.inodes.chown = chown
    hang()
    expect(await garbage(false)).toEqual([['kept', expect.stringMatching(/was walked [^;]*$/)]])
    expect(opened).toEqual([])
  })

  it('is detected if a link in a volume leads to the server', async () => {
    share = `${stage.top}/volumes/outer/share`
    makeTree(stage.fs, share, ['file data/a 0640 5'])
    stage.fs.symlinkSync('share/data', `${stage.top}/volumes/outer/link`)
    hang()
    const source = `${stage.top}/volumes/outer`
    await expect(stage.mount('a', { source, subPath: 'link' })).rejects.toThrow(`"${source}/link" does not respond`)
    expect([asked, opened]).toEqual([[`${source}/link`], []])
  })

  it('keeps the restore of its volume pending, whichever path leads to the directory', async () => {
    share = `${stage.top}/volumes/outer/share`
    makeTree(stage.fs, share, ['file data/a 0640 5'])
    stage.fs.symlinkSync('share/data', `${stage.top}/volumes/outer/link`)
    const options = { source: `${stage.top}/volumes/outer`, subPath: 'link', ownership: 'walk' }
    await stage.mount('a', { ...options, restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' })
    hang()
    await stage.unmount('a')
    expect(stage.warnings).toEqual([expect.stringMatching(/source ".*\/outer\/link" does not respond/)])
    expect(volumeRecords.read(stage, only())).toMatchObject({ restorePending: true })
    expect(opened).toEqual([])
  })

  it('is a warning of doctor for a rule and for a volume, and the other checks continue', async () => {
    await walk(`${share}/data`)
    makeTree(stage.fs, `${stage.top}/local`, ['file a 0640 5'])
    await walk(`${stage.top}/local`)
    hang()
    const warning = (path: string) =>
      expect.objectContaining({ level: 'warning', text: expect.stringContaining(`${path} does not respond`) })
    const found = await Array.fromAsync(checkRecordedVolumes(stage.session()))
    expect(found.filter(({ level }) => level !== 'ok')).toEqual([warning(`${share}/data`)])
    expect(found).toContainEqual({ level: 'ok', text: 'volumes on record: 2', remedy: '' })
    stage.fs.symlinkSync(share, `${stage.top}/link`)
    const sources = [`${share}/*`, `${stage.top}/link/*`, `${stage.top}/local/*`]
    const config = { ...stage.config, allow: [{ sources }] }
    const ofRules = await Array.fromAsync(
      checkConfiguration({ ...stage.session(), config }, { file: '/none', faults: [] }),
    )
    expect(ofRules).toContainEqual(warning(share))
    expect(ofRules).toContainEqual(warning(`${stage.top}/link`))
    expect(ofRules.filter(({ level }) => level === 'ok').map(({ text }) => text)).toContainEqual(
      expect.stringContaining(`${stage.top}/local can be mounted`),
    )
    expect(opened).toEqual([])
  })
})
