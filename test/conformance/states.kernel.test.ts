import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DoctorDocument } from '../../src/cli/commands/doctor.ts'
import { healNode } from '../../src/cli/commands/heal.ts'
import { type CommandDocument, getVerbOfCommand } from '../../src/cli/commands/index.ts'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { checkRecordedMounts } from '../../src/cli/doctor/records.ts'
import { formatJsonDocument, formatOutputLines } from '../../src/cli/output/output.ts'
import { formatVolumeStats } from '../../src/frontends/csi/node-service.ts'
import { runCsiTask } from '../../src/frontends/csi/run-task.ts'
import type { VolumeStats } from '../../src/frontends/csi/worker-tasks.ts'
import { createCallLog } from '../../src/log/call-log.ts'
import { writeMetrics } from '../../src/metrics/expose.ts'
import { healMounts } from '../../src/repair/heal.ts'
import { isFaultyState, MOUNT_STATES, type MountFinding, type MountState } from '../../src/repair/state.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { locateMountRecords } from '../../src/state/record-directories.ts'
import { makeImage } from '../helpers/disks.ts'
import { cannotServe } from '../helpers/fuse-node.ts'
import { startHangingServer } from '../helpers/hanging.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import { PLUGIN, RECORDING } from '../kubernetes/fake-kubectl.ts'
import { parseExposition } from '../metrics/exposition.ts'

const UID = 'f7aea1c3-1111-2222-3333-444455556666'
const WALK = { ownership: 'walk', 'kubernetes.io/mounterArgs.FsGroup': '2000' }

/** A node where CSI publishes one volume of one pod. */
class StateNode {
  readonly stage: Stage = kernelStage('ext4')
  readonly source = `${this.stage.top}/volumes/data`
  readonly above = `${this.stage.top}/pods/${UID}/volumes/kubernetes.io~csi/v`
  readonly target = `${this.above}/mount`
  readonly ends: (() => unknown)[] = []

  constructor() {
    this.stage.config = { ...this.stage.config, logFile: `${this.stage.top}/log` }
    makeTree(fs, this.source, ['file test 0640 7', 'file other 0640 7'])
    fs.mkdirSync(this.above, { recursive: true })
  }

  async close(): Promise<void> {
    for (const end of this.ends.reverse()) await end()
    while (spawnSync('umount', ['--lazy', this.target]).status === 0);
    this.stage.close()
  }

  call(job: 'publish' | 'unpublish' | 'stats', options: Record<string, string> = {}) {
    const { host, config } = this.stage
    const log = createCallLog({ verb: 'stats', directory: this.target }, 'info', () => {})
    const process = { host, config, log, configFaults: [], forbidCoreDumps() {} }
    const target = { volumeId: 'v', directory: this.target }
    if (job !== 'publish') return runCsiTask({ do: job, ...target }, process)
    return runCsiTask({ do: job, ...target, options, secrets: {}, lifecycle: 'inline' }, process)
  }

  async publish(more: Record<string, string> = {}) {
    const pod = { 'kubernetes.io/pod.uid': UID, 'kubernetes.io/pod.namespace': 'shop', 'kubernetes.io/pod.name': 'web' }
    expect(await this.call('publish', { source: this.source, ...pod, ...more })).toEqual({})
  }

  detach() {
    execFileSync('umount', [this.target])
  }

  changeRecord(change: Partial<MountRecord>) {
    const record = mountRecords.find(this.stage.session(), this.target).record ?? expect.unreachable()
    mountRecords.write(this.stage.session(), { ...record, ...change })
  }

  get recordFile() {
    return `${locateMountRecords(this.stage.session(), this.target).path}/record.json`
  }

  async holdOpen(path: string): Promise<ChildProcess> {
    const child = spawn('sh', ['-c', 'exec 3<"$1"; echo; exec sleep 1000', 'sh', path], {
      stdio: ['ignore', 'pipe', 2],
    })
    // A process that is still ending keeps the image in use, and the unmount of the stage fails.
    const ended = once(child, 'exit')
    this.ends.push(() => (child.kill('SIGKILL') ? ended : undefined))
    await new Promise((resolve) => child.stdout?.once('data', resolve))
    return child
  }
}

interface Situation {
  /** Why the machine cannot make it; '': it can. */
  cannot?: string
  make(node: StateNode): void | Promise<void>
  /** What CSI answers in place of a condition. */
  csi?: 'NOT_FOUND'
  /** Its record cannot be read. */
  isUnreadable?: boolean
}

/** How the kernel gets a published volume into each state. */
const SITUATIONS: Record<MountState, Record<string, Situation>> = {
  healthy: { 'a published volume': { make: (node) => node.publish() } },
  missing: {
    'a volume that was unmounted by hand': {
      async make(node) {
        await node.publish()
        node.detach()
      },
    },
  },
  stale: {
    'a volume whose source was replaced': {
      async make(node) {
        await node.publish()
        fs.renameSync(node.source, `${node.source}-before`)
        fs.mkdirSync(node.source)
      },
    },
    'a volume whose source was deleted': {
      async make(node) {
        await node.publish()
        fs.rmSync(node.source, { recursive: true })
      },
    },
  },
  changed: {
    'a volume that others gave to another group between two pods': {
      async make(node) {
        fs.chmodSync(node.source, 0o777)
        await node.publish(WALK)
        expect(await node.call('unpublish')).toEqual({})
        execFileSync('chown', ['-R', '0:999', node.source])
        await node.publish(WALK)
      },
    },
  },
  partial: {
    'a volume with an immutable file': {
      async make(node) {
        const chattr = (flag: string) => execFileSync(requireProgram('chattr'), [flag, `${node.source}/test`])
        chattr('+i')
        node.ends.push(() => chattr('-i'))
        await node.publish(WALK)
      },
    },
  },
  orphaned: {
    'a volume of a pod that kubelet may have deleted': {
      async make(node) {
        await node.publish()
        // The clock that dates files has ticks of up to ten milliseconds.
        await setTimeout(25)
        fs.mkdirSync(`${node.stage.top}/pod-resources`)
        fs.writeFileSync(`${node.stage.top}/pod-resources/kubelet.sock`, '')
      },
    },
    'a volume whose directory was deleted': {
      csi: 'NOT_FOUND',
      async make(node) {
        await node.publish()
        node.detach()
        fs.rmSync(node.above, { recursive: true })
      },
    },
  },
  interrupted: {
    'a volume whose publication crashed': {
      async make(node) {
        await node.publish()
        node.detach()
        node.changeRecord({ mounted: undefined })
      },
    },
  },
  unknown: {
    'a volume below a server that does not respond': {
      cannot: cannotServe(),
      async make(node) {
        const source = `${node.stage.top}/volumes/served`
        const server = await startHangingServer(source, `${node.stage.top}/hangs`)
        await node.publish({ source })
        server.hang()
        node.ends.push(() => {
          server.resume()
          execFileSync('umount', ['--lazy', source])
        })
      },
    },
    'a volume under a mount of others': {
      async make(node) {
        await node.publish()
        node.changeRecord({ mounted: undefined })
      },
    },
    'a volume whose record is damaged': {
      isUnreadable: true,
      async make(node) {
        await node.publish()
        fs.writeFileSync(node.recordFile, '{}')
      },
    },
    'a volume whose record is lost': {
      async make(node) {
        await node.publish()
        fs.writeFileSync(`${node.above}/vol_data.json`, '{"driverName":"modekeep.csi"}')
        fs.rmSync(node.recordFile)
      },
    },
  },
  busy: {
    'an image that a process has open after its unmount': {
      async make(node) {
        const image = `${node.stage.top}/volumes/image`
        makeImage(image, 'ext4')
        node.stage.allow({ fsTypes: ['ext4'] })
        await node.publish({ source: image, 'kubernetes.io/fsType': 'ext4' })
        await node.holdOpen(`${node.target}/one`)
        expect(await node.call('unpublish')).toMatchObject({ failure: { code: 'FAILED_PRECONDITION' } })
      },
    },
  },
  'in progress': {
    'a missing volume that a call is at work on': {
      async make(node) {
        await node.publish()
        node.detach()
        const lock = tryLockRecordDirectory(node.stage.session(), locateMountRecords(node.stage.session(), node.target))
        node.ends.push(() => lock?.[Symbol.dispose]())
      },
    },
  },
}

const NO_COLOUR = false
const textOf = (document: CommandDocument) => formatOutputLines(getVerbOfCommand(document).lines(document), NO_COLOUR)

async function readMetrics({ session }: Stage): Promise<Record<string, number>> {
  let text = ''
  await writeMetrics(fs, session(), '1', (samples) => {
    text = samples
  })
  const mounts = parseExposition(text).samples.filter(({ name }) => name === 'modekeep_mounts')
  return Object.fromEntries(mounts.map(({ labels, value }) => [labels.state, value]))
}

async function readDoctor({ session }: Stage): Promise<DoctorDocument> {
  const findings = (await Array.fromAsync(checkRecordedMounts(session()))).map(
    (found) => ({ area: 'mounts', ...found }) as const,
  )
  const count = (wanted: string) => findings.filter(({ level }) => level === wanted).length
  return { verb: 'doctor', ok: count('ok'), warnings: count('warning'), faults: count('fault'), findings }
}

/** `kubectl modekeep VERB`, where a node answers with the document. */
function callPlugin(top: string, document: CommandDocument, hasTrouble: boolean): string {
  const { verb } = document
  fs.mkdirSync(`${top}/plugin`, { recursive: true })
  const give = (name: string, text: string, mode = 0o644) => fs.writeFileSync(`${top}/plugin/${name}`, text, { mode })
  give('kubectl', RECORDING, 0o755)
  give('pods', 'node\tnode\tmk\t2026-01-01T00:00:00Z\t\tRunning\n')
  give(`mk.${verb}`, formatJsonDocument(document))
  give(`mk.${verb}.status`, hasTrouble ? '1\n' : '0\n')
  const env = { PATH: `${top}/plugin:${process.env.PATH}`, TOP: `${top}/plugin`, TMPDIR: top }
  const { status, stdout } = spawnSync(PLUGIN, [verb], { encoding: 'utf8', env, timeout: 60_000 })
  expect(status).toBe(hasTrouble ? 1 : 0)
  return stdout
}

/** Steps after the table; those about the container runtime are for no state. */
const hasAdvice = (text: string) => /^next\n( {2}containers on runc.*\n)* {2}(?!containers on runc)/m.test(text)

/** What an administrator, kubelet and a scraper read of the one mount of a node. */
async function readSurfaces(node: StateNode, { state, reason, action }: MountFinding) {
  const { stage, target } = node
  const has = (text: string) => ({ state: text.includes(state), reason: reason !== '' && text.includes(reason) })
  const healed = await healNode(stage.session(), {
    verb: 'heal',
    isDry: true,
    isWatching: false,
    kubelet: undefined,
    listen: undefined,
  })
  const logged = stage.noted.found
  const document = await readSelectedStatus(stage.session())
  const doctor = await readDoctor(stage)
  const trouble = doctor.findings.filter(({ level }) => level !== 'ok')
  const { stats, failure } = (await node.call('stats')) as { stats?: VolumeStats; failure?: { code: string } }
  const statusText = textOf(document)
  const pluginText = callPlugin(stage.top, document, false)
  return {
    status: [
      ...document.mounts.map(({ state, reason }) => ({ state, reason })),
      ...document.unrecorded.map(({ reason }) => ({ state: 'unknown', reason })),
      ...document.unreadable.map(({ fault }) => ({ state: 'unknown', reason: fault })),
    ],
    'text of status': { ...has(statusText), hasAdvice: hasAdvice(statusText) },
    heal: healed.mounts.map(({ state, reason, action }) => ({ state, reason, action })),
    'text of heal': has(textOf(healed)),
    'exit status of heal': getVerbOfCommand(healed).hasTrouble?.(healed) ? 1 : 0,
    'log of heal': logged,
    doctor: trouble.map(({ level, text }) => ({ level, isOfMount: text.startsWith(target), ...has(text) })),
    'exit status of doctor': getVerbOfCommand(doctor).hasTrouble?.(doctor) ? 1 : 0,
    metrics: await readMetrics(stage),
    CSI: failure?.code ?? (stats && formatVolumeStats(stats).volumeCondition),
    'kubectl modekeep status': { ...has(pluginText), hasAdvice: /^ {2}do: /m.test(pluginText) },
    'kubectl modekeep doctor': has(callPlugin(stage.top, doctor, doctor.faults > 0)),
    action,
  }
}

/** The same, from the state alone. */
function expectedSurfaces(
  finding: MountFinding,
  { csi, isUnreadable = false }: Situation,
): Awaited<ReturnType<typeof readSurfaces>> {
  const { state, reason, action } = finding
  const isFault = isFaultyState(state)
  const isFailure = action === 'failed'
  const inText = { state: true, reason: reason !== '' }
  const inDoctor = { state: isFault, reason: isFault }
  const level = isFailure || isUnreadable ? 'fault' : 'warning'
  return {
    status: [{ state, reason }],
    'text of status': { ...inText, hasAdvice: isFault },
    heal: [{ state, reason, action }],
    'text of heal': inText,
    'exit status of heal': isFailure ? 1 : 0,
    'log of heal': isFault ? [finding] : [],
    doctor: isFault ? [{ level, isOfMount: true, ...inText }] : [],
    'exit status of doctor': level === 'fault' ? 1 : 0,
    metrics: { [state]: 1 },
    CSI: csi ?? { abnormal: isFault, message: isFault ? `${state}: ${reason}` : '' },
    'kubectl modekeep status': { ...inText, hasAdvice: isFault },
    'kubectl modekeep doctor': inDoctor,
    action,
  }
}

const title = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot)(`the state of a mount${title}`, () => {
  let node: StateNode
  beforeEach(() => {
    node = new StateNode()
  })
  afterEach(() => node.close())

  it('is tested on a real kernel for each defined state', () => {
    expect(Object.keys(SITUATIONS)).toEqual(MOUNT_STATES)
  })

  const cases = Object.entries(SITUATIONS).flatMap(([state, situations]) =>
    Object.entries(situations).map(([what, situation]) => [state, what, situation] as const),
  )

  for (const [state, what, { cannot = '', ...situation }] of cases) {
    const why = cannot && ` (skipped: ${cannot})`
    const title = `${state} is the same in status, heal, doctor, metrics, CSI and kubectl: ${what}${why}`
    it.skipIf(cannot !== '')(title, async () => {
      await situation.make(node)
      const [finding, ...others] = await healMounts(node.stage.session(), true)
      expect(finding?.state).toBe(state)
      expect(others).toEqual([])
      if (finding === undefined) return
      expect(await readSurfaces(node, finding)).toEqual(expectedSurfaces(finding, situation))
    })
  }

  it('is reported only by heal after the use of an unmounted image ended', async () => {
    await SITUATIONS.busy['an image that a process has open after its unmount']?.make(node)
    node.stage.host.monotonicMs = () => Number.MAX_SAFE_INTEGER
    expect(await node.call('unpublish')).toEqual({})
    for (const end of node.ends.splice(0)) end()
    await setTimeout(500)
    expect(await healMounts(node.stage.session(), true)).toMatchObject([{ state: 'orphaned', action: 'forgotten' }])
    expect((await readSelectedStatus(node.stage.session())).mounts).toEqual([])
    expect((await readDoctor(node.stage)).findings.filter(({ level }) => level !== 'ok')).toEqual([])
    expect(await readMetrics(node.stage)).toEqual({})
    expect(await node.call('stats')).toMatchObject({ failure: { code: 'NOT_FOUND' } })
  })

  it('is selected by the alert and the dashboard panel of unhealthy mounts exactly if isFaultyState returns true', () => {
    for (const name of ['alerts.yaml', 'dashboard.json']) {
      const file = resolve(import.meta.dirname, '../../driver/observability', name)
      const [, quiet = ''] = /modekeep_mounts\{.*?state!~\\?"([^"\\]*)/.exec(fs.readFileSync(file, 'utf8')) ?? []
      const isQuiet = new RegExp(`^(${quiet})$`)
      expect(MOUNT_STATES.filter((state) => !isQuiet.test(state))).toEqual(MOUNT_STATES.filter(isFaultyState))
    }
  })
})
