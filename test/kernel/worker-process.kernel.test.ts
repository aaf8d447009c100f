import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import type { Handle } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { locateVolumeRecords } from '../../src/state/record-directories.ts'
import { openJournal } from '../../src/state/volume-journal.ts'
import { isRoot } from '../helpers/stage.ts'

const VOLUME = 'ef53.1-2-3'

const suiteTitle = `an isolated worker process started from the sources${isRoot ? '' : ' (skipped: groups need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  let top: string
  let lock: string
  let handle: Handle
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-worker-`)
    lock = `${top}/walker.lock`
    fs.mkdirSync(`${top}/volume`)
    fs.writeFileSync(`${top}/volume/file`, '')
    const store = { host: linuxHost, config: { stateDir: top } }
    fs.mkdirSync(locateVolumeRecords(store, VOLUME).path, { recursive: true })
    openJournal(store, VOLUME, false).close()
    handle = linuxHost.inodes.openTrusted(`${top}/volume`)
    onTestFinished(() => {
      linuxHost.inodes.close(handle)
      fs.rmSync(top, { recursive: true })
    })
  })

  /** @param told gets the outcome */
  const run = (task: object, told: (outcome: string) => void) =>
    linuxHost.callWorker({
      task: JSON.stringify(task),
      handle,
      lock,
      patienceMs: 60_000,
      onReport: (report) => void ('outcome' in report && told(JSON.stringify(report.outcome))),
    })
  const walk = () => ({
    work: 'walk',
    config: { ...DEFAULT_CONFIG, stateDir: top },
    secrets: [],
    about: {
      volume: VOLUME,
      task: { do: 'apply', fsGroup: { groupId: 2000, access: 'keep', changePolicy: 'Always' } },
    },
  })

  it('runs a task under the lock that names it, and reports the result', async () => {
    const said: object[] = []
    const pids: number[] = []
    const end = await run(walk(), (outcome) => {
      said.push(JSON.parse(outcome))
      pids.push(Number(fs.readFileSync(lock, 'utf8')))
    })
    expect(end).toEqual({ isSilent: false, leftBehind: undefined, pid: pids[0], ended: expect.any(Promise) })
    expect(said).toMatchObject([{ done: { report: { visited: 2, changed: 2 } } }])
    expect(pids).toEqual([expect.any(Number)])
    expect(pids[0]).toBeGreaterThan(1)
    expect(fs.statSync(`${top}/volume/file`).gid).toBe(2000)
    expect(fs.existsSync(lock)).toBe(false)
  })

  it('reports why a task failed', async () => {
    const said: string[] = []
    const { path } = locateVolumeRecords({ config: { stateDir: top } }, VOLUME)
    for (const name of fs.readdirSync(path)) fs.rmSync(`${path}/${name}`)
    fs.writeFileSync(`${path}/journal.db`, '')
    await run(walk(), (line) => said.push(line))
    expect(said).toEqual([expect.stringContaining('it is empty, although the volume was walked before')])
    expect(said[0]).toMatch(/^{"refused":/)
  })

  it('fails for an unknown task', async () => {
    const said: string[] = []
    expect(await run({}, (line) => said.push(line))).toMatchObject({ isSilent: false })
    expect(said).toEqual([expect.stringMatching(/^{"failed":/)])
  })

  it('is ended if its report cannot be handled, and its lock is free', async () => {
    const disk = new Error('the disk is full')
    const told = () => {
      throw disk
    }
    await expect(run(walk(), told)).rejects.toBe(disk)
    expect(linuxHost.isLocked(lock)).toBe(false)
  })
})
