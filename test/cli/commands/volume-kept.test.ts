import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GcDocument } from '../../../src/cli/commands/gc.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import type { StatusDocument } from '../../../src/cli/commands/status-document.ts'
import { checkRecordedVolumes } from '../../../src/cli/doctor/records.ts'
import { parseSource } from '../../../src/config/source.ts'
import { openNodeDirectoryVolume } from '../../../src/fsgroup/volume-by-hand.ts'
import { findVolumePath } from '../../../src/state/find-volume.ts'
import { listVolumesWithRecords } from '../../../src/state/record-directories.ts'
import { computeTextVolumeId } from '../../../src/state/volume-identity.ts'
import { volumeRecords } from '../../../src/state/volume-record.ts'
import { addSkipReason, cannotMountWith } from '../../helpers/needs.ts'
import { kernelStage, onEveryStage, onKernelStages, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../../helpers/tree.ts'

let stage: Stage
let source: string
let original: Record<string, number>

/** A volume behind a link, walked for a pod that is gone. */
async function walk(open: () => Stage): Promise<void> {
  stage = open()
  source = `${stage.top}/volumes/git`
  makeTree(stage.fs, `${source}/..one/part`, SIX_FILES)
  original = groups(listTree(stage.fs, `${source}/..one/part`))
  stage.fs.symlinkSync('..one/part', `${source}/part`)
  const options = { source, subPath: 'part', ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
  await stage.mount('a', options)
  await stage.unmount('a')
}
afterEach(() => stage.close())

const only = () => {
  const [volume = '', ...more] = listVolumesWithRecords(stage)
  expect(more).toEqual([])
  return volume
}
const place = () => `${stage.config.stateDir}/ownership/${only()}`
const gc = async (forget?: string) =>
  ((await runVerb(stage.session(), { verb: 'gc', isDry: false, forget })) as GcDocument).items.map(
    ({ kind, action, reason }) => `${kind} ${action}: ${reason}`,
  )
const restore = (target: { volume: string } | { directory: string }) =>
  runVerb(stage.session(), { verb: 'restore', target, isDry: false, isForced: false }) as Promise<RestoreDocument>

onEveryStage('a volume that can be restored', (open) => {
  beforeEach(() => walk(open))

  it('gc keeps a restorable volume after its parent directory was moved away, because the directory may return', async () => {
    stage.fs.renameSync(source, `${source}-away`)
    expect(await gc()).toEqual([expect.stringMatching(/^volume kept: .* is missing: .* --forget /)])
    stage.fs.renameSync(`${source}-away`, source)
    expect(await restore({ volume: only() })).toMatchObject({ outcome: 'restored' })
    expect(groups(listTree(stage.fs, `${source}/..one/part`))).toEqual(original)
  })

  it('gc keeps and reports a restorable volume with a damaged record, and a restore by directory succeeds', async () => {
    const volume = only()
    const record = `${place()}/record.json`
    stage.fs.writeFileSync(record, stage.fs.readFileSync(record, 'utf8').replace('2000', '2001'))
    expect(await gc()).toEqual([
      expect.stringMatching(/^volume kept: its record cannot be read: "modekeep restore DIR"/),
    ])
    expect(await Array.fromAsync(checkRecordedVolumes(stage.session()))).toContainEqual(
      expect.objectContaining({ level: 'fault', text: `the record of volume ${volume} cannot be read` }),
    )
    await expect(restore({ volume })).rejects.toThrow('give its directory instead, "modekeep restore DIR"')
    expect(await restore({ directory: `${source}/..one/part` })).toMatchObject({ outcome: 'restored' })
    expect(groups(listTree(stage.fs, `${source}/..one/part`))).toEqual(original)
  })

  it('gc keeps foreign files in the state directory and takes none for a volume', async () => {
    const volumes = `${stage.config.stateDir}/ownership`
    stage.fs.writeFileSync(`${volumes}/notes`, '')
    stage.fs.mkdirSync(`${volumes}/lost+found`)
    stage.fs.writeFileSync(`${place()}/journal.db.bak`, '')
    stage.fs.mkdirSync(`${stage.config.stateDir}/mounts/%2Fx`, { recursive: true })
    stage.fs.writeFileSync(`${stage.config.stateDir}/mounts/%2Fx/notes`, '')
    const { volumes: shown } = (await runVerb(stage.session(), {
      verb: 'status',
      metrics: undefined,
    })) as StatusDocument
    expect(shown.map(({ volume }) => volume)).toEqual([only()])
    expect(await gc()).toEqual([expect.stringMatching(/^volume kept: .* was walked/)])
    await restore({ volume: only() })
    expect(await gc()).toEqual([
      "volume kept: nothing is recorded of it, but its directory has journal.db.bak, which is not modekeep's",
    ])
    expect(stage.fs.readdirSync(volumes).sort()).toEqual([only(), 'lost+found', 'notes'].sort())
    expect(stage.fs.readdirSync(place())).toContain('journal.db.bak')
    expect(stage.fs.existsSync(`${stage.config.stateDir}/mounts/%2Fx/notes`)).toBe(true)
  })

  it('a restore refuses another directory that has replaced the volume', async () => {
    const opened = openNodeDirectoryVolume(stage.session(), `${source}/..one`, { set: 0, clear: 0 }, only())
    await expect(opened).rejects.toThrow('was exchanged')
  })
})

onKernelStages('a volume that a mount still shows', (open) => {
  beforeEach(() => walk(open))

  it('gc keeps a mounted volume after an atomic update removed its name, and a restore by volume name succeeds', async () => {
    const elsewhere = `${stage.top}/elsewhere`
    stage.fs.mkdirSync(elsewhere)
    execFileSync('mount', ['--bind', `${source}/..one/part`, elsewhere])
    try {
      stage.fs.renameSync(`${source}/..one`, `${source}-old`)
      makeTree(stage.fs, `${source}/..two/part`, SIX_FILES)
      stage.fs.unlinkSync(`${source}/part`)
      stage.fs.symlinkSync('..two/part', `${source}/part`)
      expect(await gc()).toEqual([expect.stringMatching(/^volume kept: /)])
      expect(await restore({ volume: only() })).toMatchObject({ outcome: 'restored', directory: elsewhere })
      expect(groups(listTree(stage.fs, `${source}-old/part`))).toEqual(original)
    } finally {
      execFileSync('umount', [elsewhere])
    }
  })
})

describe.skipIf(cannotMountWith() !== '')(addSkipReason('the volume of an NFS server', cannotMountWith()), () => {
  const export_ = 'server:/exports/a'
  const volume = computeTextVolumeId({ fsType: 'nfs', source: parseSource(export_) })
  let directory: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    directory = `${stage.top}/volumes/data`
    stage.fs.mkdirSync(directory)
    const about = { source: export_, group: 2000, groupAccess: 'keep', complete: true, restorePending: true } as const
    volumeRecords.write(stage, { volume, ...about })
    execFileSync('mount', ['-t', 'tmpfs', export_, directory])
  })
  afterEach(() => void execFileSync('umount', ['--recursive', directory]))

  /** What the kernel would say of a mount by NFS: this test has no server. */
  const find = (fsType: string) => {
    const session = stage.session()
    const table = () => session.host.mounts.table().replaceAll(` tmpfs ${export_} `, ` ${fsType} ${export_} `)
    return findVolumePath({ ...session, host: { ...session.host, mounts: { ...session.host.mounts, table } } }, volume)
  }

  it('an NFS volume is found by its source, for any NFS version that the kernel names', async () => {
    expect(await Promise.all(['nfs', 'nfs4'].map(find))).toEqual([directory, directory])
  })

  it.each(['tmpfs', 'fuse.sshfs'])(
    'an NFS volume is not confused with a %s that has the same source name',
    async (fsType) => {
      await expect(find(fsType)).rejects.toThrow(`${export_} is not mounted: mount it, then call this again`)
    },
  )

  it('an NFS volume is not confused with another mount on top of it', async () => {
    execFileSync('mount', ['-t', 'tmpfs', 'other', directory])
    try {
      await expect(find('nfs4')).rejects.toThrow(`${export_} is not mounted: mount it, then call this again`)
    } finally {
      execFileSync('umount', [directory])
    }
  })
})
