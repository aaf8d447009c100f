import { dirname } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../../src/cli/commands/status.ts'
import { checkRecordedMounts } from '../../../src/cli/doctor/records.ts'
import { createFault, type Fault } from '../../../src/errors/fault.ts'
import { rehearsePublication, runCsiTask } from '../../../src/frontends/csi/run-task.ts'
import { CSI_TASK_WORDS, type CsiTask, type VolumeStats } from '../../../src/frontends/csi/worker-tasks.ts'
import type { VolumeCallContext } from '../../../src/frontends/flexvolume/volume-call.ts'
import { createCallLog } from '../../../src/log/call-log.ts'
import { healMounts } from '../../../src/repair/heal.ts'
import { isFaultyState, type MountState } from '../../../src/repair/state.ts'
import { type MountRecord, mountRecords } from '../../../src/state/mount-record.ts'
import { locateMountRecords } from '../../../src/state/record-directories.ts'
import { onEveryStage, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree } from '../../helpers/tree.ts'

const UID = 'f7aea1c3-1111-2222-3333-444455556666'

onEveryStage('tasks of the CSI server', (open) => {
  let stage: Stage
  let source: string
  let target: string
  let lines: Record<string, unknown>[]
  let forbidden: number
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file test 0640 7'])
    const above = `${stage.top}/pods/${UID}/volumes/kubernetes.io~csi/v`
    stage.fs.mkdirSync(above, { recursive: true })
    target = `${above}/mount`
    lines = []
    forbidden = 0
    return () => {
      if (!stage.world && mountRecords.find(stage.session(), target).record)
        return run({ do: 'unpublish' }).then(stage.close)
      return stage.close()
    }
  })

  function detach() {
    const point = stage.host.inodes.openTrusted(target.slice(0, -'/mount'.length))
    stage.host.mounts.detach(point, Buffer.from('mount'))
    stage.host.inodes.close(point)
  }

  function replaceSource() {
    stage.fs.renameSync(source, `${source}-before`)
    stage.fs.mkdirSync(source)
  }

  const changeRecord = (change: Partial<MountRecord>) => {
    const record = mountRecords.find(stage.session(), target).record ?? expect.unreachable()
    mountRecords.write(stage.session(), { ...record, ...change })
  }

  const forgetMountId = () => changeRecord({ mounted: undefined })

  function interrupt() {
    detach()
    forgetMountId()
  }

  const run = (job: Partial<CsiTask> & Pick<CsiTask, 'do'>, configFaults: Fault[] = []) => {
    const whole = { volumeId: 'v', directory: target, options: {}, secrets: {}, lifecycle: 'inline', ...job } as CsiTask
    const log = createCallLog({ verb: CSI_TASK_WORDS[job.do].verb, directory: target }, 'info', (line) =>
      lines.push(JSON.parse(line)),
    )
    const forbidCoreDumps = () => {
      forbidden++
    }
    const process: VolumeCallContext = { host: stage.host, config: stage.config, log, configFaults, forbidCoreDumps }
    return runCsiTask(whole, process)
  }
  const publish = (more: Record<string, string> = {}, over: Partial<CsiTask> = {}) => {
    const pod = { 'kubernetes.io/pod.uid': UID, 'kubernetes.io/pod.namespace': 'shop' }
    return run({ do: 'publish', options: { source, ...pod, ...more }, ...over })
  }
  const isThere = () => stage.fs.existsSync(target)

  it('a rehearsal checks a request and a record, and changes nothing', () => {
    const before = stage.fs.readdirSync(stage.top, { recursive: true })
    rehearsePublication(stage.session())
    expect(stage.fs.readdirSync(stage.top, { recursive: true })).toEqual(before)
  })

  it('a CSI publication creates the target directory, and the unpublication removes the directory, twice', async () => {
    expect(await publish({ ownership: 'walk', 'kubernetes.io/mounterArgs.FsGroup': '2000' })).toEqual({})
    expect(groups(listTree(stage.fs, source)).test).toBe(2000)
    expect(mountRecords.read(stage.session(), target)).toMatchObject({ lifecycle: 'inline', namespace: 'shop' })
    expect(await run({ do: 'unpublish' })).toEqual({})
    expect(isThere()).toBe(false)
    expect(await run({ do: 'unpublish' })).toEqual({})
    expect(lines.map(({ verb, outcome }) => [verb, outcome])).toEqual([
      ['mount', 'Success'],
      ['unmount', 'Success'],
      ['unmount', 'Success'],
    ])
  })

  it('a repeated CSI publication changes nothing, and adds no second line to the log', async () => {
    await publish()
    const before = mountRecords.read(stage.session(), target)
    expect(await publish()).toEqual({})
    expect(mountRecords.read(stage.session(), target)).toEqual(before)
    expect(lines).toHaveLength(1)
  })

  it('a second CSI publication with other options fails, and the published volume stays unchanged', async () => {
    await publish()
    const before = mountRecords.read(stage.session(), target)
    expect(await publish({ mountOptions: 'noatime' })).toMatchObject({
      failure: { code: 'ALREADY_EXISTS', message: expect.stringContaining('is published with other options') },
    })
    expect(mountRecords.read(stage.session(), target)).toEqual(before)
  })

  it.each([
    [{ source: '/elsewhere' }, 'FAILED_PRECONDITION', /may not have bind "\/elsewhere"/],
    [{ ownership: 'maybe' }, 'INVALID_ARGUMENT', /^volumeAttributes "ownership" is "maybe"/],
    [
      { 'kubernetes.io/fsType': 'cifs', source: '//server/share', mountOptions: 'username=bob' },
      'INVALID_ARGUMENT',
      /volumeAttributes "mountOptions" has username: .* into a secret and name it in nodePublishSecretRef/,
    ],
    [{ 'kubernetes.io/pod.uid': 'other' }, 'INVALID_ARGUMENT', /that of pod f7aea1c3/],
    [{ 'kubernetes.io/fsType': 'zfs' }, 'INVALID_ARGUMENT', /fsType is "zfs"/],
  ])('a CSI publication with %j fails with %s', async (more, code, message) => {
    expect(await publish(more)).toMatchObject({ failure: { code, message: expect.stringMatching(message) } })
    expect(lines).toMatchObject([{ outcome: 'Failure', isRefused: true }])
    expect(mountRecords.find(stage.session(), target)).toEqual({})
    expect(isThere()).toBe(false)
  })

  it('a CSI publication whose record is lost is reported by doctor', async () => {
    expect(await publish({ 'kubernetes.io/pod.name': 'a' })).toEqual({})
    const session = stage.session()
    stage.fs.writeFileSync(`${dirname(target)}/vol_data.json`, '{"driverName":"modekeep.csi"}')
    const place = locateMountRecords(session, target).path
    const record = stage.fs.readFileSync(`${place}/record.json`)
    stage.fs.rmSync(`${place}/record.json`)
    const found = await Array.fromAsync(checkRecordedMounts(session))
    stage.fs.writeFileSync(`${place}/record.json`, record)
    expect(found).toContainEqual(
      expect.objectContaining({ level: 'warning', text: expect.stringMatching(`${target}.*mounted without a record`) }),
    )
  })

  it('a CSI publication is allowed only if a rule has the lifecycle of the volume', async () => {
    stage.allow({ volumes: ['persistent'] })
    expect(await publish()).toMatchObject({
      failure: { code: 'FAILED_PRECONDITION', message: expect.stringContaining('does not have inline volumes') },
    })
    expect(await publish({}, { lifecycle: 'persistent' })).toEqual({})
  })

  it('with an invalid configuration a CSI publication is refused, and an unpublication succeeds', async () => {
    expect(await run({ do: 'publish' }, [createFault('config-invalid', 'key "x" is unknown')])).toMatchObject({
      failure: { code: 'FAILED_PRECONDITION', message: 'key "x" is unknown [config-invalid]' },
    })
    expect(await run({ do: 'unpublish' }, [createFault('config-invalid', 'key "x" is unknown')])).toEqual({})
  })

  it('a CSI publication forbids core dumps before it decodes a secret, and not without a secret', async () => {
    await publish()
    expect(forbidden).toBe(0)
    await publish({}, { secrets: { key: 'x' } })
    expect(forbidden).toBe(1)
  })

  it('a CSI publication never mounts on a symbolic link', async () => {
    stage.fs.symlinkSync('/', target)
    expect(await publish()).toMatchObject({
      failure: { code: 'FAILED_PRECONDITION', message: expect.stringContaining('is a link or a file') },
    })
    stage.fs.unlinkSync(target)
  })

  it('a CSI unpublication does not remove a target directory that is not empty', async () => {
    stage.fs.mkdirSync(`${target}/kept`, { recursive: true })
    expect(await run({ do: 'unpublish' })).toMatchObject({
      failure: { code: 'FAILED_PRECONDITION', message: expect.stringContaining('is no empty directory') },
    })
    expect(stage.fs.existsSync(`${target}/kept`)).toBe(true)
  })

  it('a CSI volume whose record is damaged has the condition "unknown", and can be unpublished', async () => {
    await publish()
    const file = `${locateMountRecords(stage.session(), target).path}/record.json`
    expect(stage.fs.existsSync(file)).toBe(true)
    stage.fs.writeFileSync(file, '{}')
    const { stats } = (await run({ do: 'stats' })) as { stats: VolumeStats }
    expect(stats).toMatchObject({ space: undefined, trouble: expect.stringMatching(/^unknown: .*record/) })
    expect(await run({ do: 'unpublish' })).toEqual({})
  })

  describe('a stats call of the CSI server', () => {
    it('reports the usage of the file system', async () => {
      await publish()
      const said = await run({ do: 'stats' })
      expect(said).toMatchObject({ stats: { trouble: '' } })
      const { bytes, inodes } = (said as { stats: VolumeStats }).stats.space ?? expect.unreachable()
      for (const { total, used, available } of [bytes, inodes]) {
        expect(BigInt(total)).toBeGreaterThan(0n)
        expect(BigInt(used) + BigInt(available)).toBeLessThanOrEqual(BigInt(total))
      }
      expect(lines).toHaveLength(1)
    })

    it('reports that a published volume is no longer mounted', async () => {
      await publish()
      detach()
      expect(await run({ do: 'stats' })).toEqual({ stats: { space: undefined, trouble: 'missing: it is not mounted' } })
    })

    it.each<[MountState, () => void]>([
      ['healthy', () => {}],
      ['missing', detach],
      ['stale', replaceSource],
      ['interrupted', interrupt],
      ['unknown', forgetMountId],
    ])('heal, status, doctor and the condition of CSI report the same: %s', async (state, cause) => {
      // The memory host keeps the inode of a moved directory under its former name.
      if (state === 'stale' && stage.world) return
      await publish()
      cause()
      const session = stage.session()
      const [found] = await healMounts(session, true)
      expect(found?.state).toBe(state)
      const { mounts } = await readSelectedStatus(session)
      expect(mounts.map(({ state, reason }) => ({ state, reason }))).toEqual([{ state, reason: found?.reason }])
      const { stats } = (await run({ do: 'stats' })) as { stats: VolumeStats }
      expect(stats.trouble).toBe(isFaultyState(state) ? `${state}: ${found?.reason}` : '')
      const doctor = (await Array.fromAsync(checkRecordedMounts(session))).map(({ text }) => text)
      const text = `${target} is ${state}: ${found?.reason}`
      expect(doctor.includes(text)).toBe(isFaultyState(state))
    })

    it('fails with NOT_FOUND if nothing is published, and adds no line to the log', async () => {
      expect(await run({ do: 'stats' })).toMatchObject({ failure: { code: 'NOT_FOUND' } })
      expect(await run({ do: 'stats', directory: '/no/such/place' })).toMatchObject({ failure: { code: 'NOT_FOUND' } })
      expect(lines).toEqual([])
    })
  })
})
