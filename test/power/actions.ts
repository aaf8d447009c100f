import * as fs from 'node:fs'
import { GROUP, makeVolume, type Snapshot, snapshot } from '../crash/volume.ts'
import type { PowerNode } from './power-node.ts'
import { formatDifferences, listDifferences, listWidened } from './volume-states.ts'

/** What is checked after a power cut failed. */
export class MomentFailure extends Error {
  readonly lost: number

  /** @param lost number of inodes that are wrong */
  constructor(message: string, lost: number) {
    super(message)
    this.lost = lost
  }
}

/** A run of modekeep that is recorded, and the check of the node after a power cut in it. */
export interface PowerAction {
  /** Runs before the recording. */
  prepare(): Promise<void>
  run(): Promise<void>
  /**
   * @param isEnded the run had ended with success
   * @param number of the moment
   * @throws {MomentFailure}
   */
  check(isEnded: boolean, number: number): Promise<void>
}

type Options = Readonly<Record<string, string>>

const WALK: Options = { ownership: 'walk' }
const PLAIN_FILES = 300
/** The next calls are made at each moment with a multiple of this number. The kept writes repeat every 3 or 9 moments. */
const CALLS_EVERY = 4

/** An action on a volume of twelve special inodes and some hundred plain files. */
abstract class VolumeAction implements PowerAction {
  readonly node: PowerNode
  original: Snapshot = {}
  /** The volume with the pod's group. */
  applied: Snapshot = {}
  /** The volume after the run. */
  abstract readonly end: 'original' | 'applied'

  constructor(node: PowerNode) {
    this.node = node
  }

  abstract run(): Promise<void>

  async prepare(): Promise<void> {
    makeVolume(this.node.source)
    for (let n = 0; n < PLAIN_FILES; n++) {
      const directory = `${this.node.source}/files/${n % 7}`
      fs.mkdirSync(directory, { recursive: true })
      fs.writeFileSync(`${directory}/${n}`, `${n}`)
      fs.chownSync(`${directory}/${n}`, 0, n % 3)
      fs.chmodSync(`${directory}/${n}`, n % 2 === 0 ? 0o640 : 0o600)
    }
    this.original = snapshot(this.node.source)
  }

  async mount(options: Options): Promise<void> {
    const request = { source: this.node.source, 'kubernetes.io/fsGroup': String(GROUP), ...options }
    const reply = await this.node.call('mount', this.node.podDirectory('a'), JSON.stringify(request))
    if (reply.status !== 'Success') throw new MomentFailure(`the mount failed: ${reply.message}`, 0)
  }

  async unmount(): Promise<void> {
    const reply = await this.node.call('unmount', this.node.podDirectory('a'))
    if (reply.status !== 'Success') throw new MomentFailure(`the unmount failed: ${reply.message}`, 0)
  }

  /** Runs a command of a person. */
  runCommand(...args: string[]): void {
    const { exitCode, stdout, stderr } = this.node.runCommand(...args)
    if (exitCode === 0) return
    const now = snapshot(this.node.source)
    const paths = listDifferences(now, this.original)
    const differences = formatDifferences(paths, now, this.original)
    throw new MomentFailure(`${args[0]} failed: ${stdout}${stderr}\n${differences}`, paths.length)
  }

  restore(): void {
    this.runCommand('restore', this.node.source)
  }

  async check(isEnded: boolean, number: number): Promise<void> {
    const now = snapshot(this.node.source)
    const widened = listWidened(now, this.original, this.applied)
    if (widened.length > 0) {
      const differences = formatDifferences(widened, now, this.original)
      throw new MomentFailure(
        `${widened.length} inodes have rights that were not requested\n${differences}`,
        widened.length,
      )
    }
    if (isEnded) this.assertVolume('after the end of the call, before a restore', this[this.end])
    this.#assertReadableState()
    // The next pod's calls and a person's restore find the same records.
    if (number % CALLS_EVERY === 0) await this.makeNextCalls()
    this.restore()
    this.assertVolume('after the restore', this.original)
  }

  /** Makes the next calls for the volume, which use the records that the power cut left. */
  async makeNextCalls(): Promise<void> {
    await this.mount({ ...WALK, restoreOnUnmount: 'true' })
    await this.unmount()
    this.assertVolume('after the next mount and unmount', this.original)
  }

  assertVolume(when: string, wanted: Snapshot): void {
    const now = snapshot(this.node.source)
    const paths = listDifferences(now, wanted)
    if (paths.length === 0) return
    throw new MomentFailure(
      `${paths.length} inodes differ ${when}\n${formatDifferences(paths, now, wanted)}`,
      paths.length,
    )
  }

  #assertReadableState(): void {
    const { exitCode, stdout, stderr } = this.node.runCommand('status', '--json')
    const isReadable = exitCode === 0 && JSON.parse(stdout).volumes.every(({ fault }: { fault: unknown }) => !fault)
    if (!isReadable) throw new MomentFailure(`status exits with ${exitCode}: ${stdout}${stderr}`, 0)
  }
}

class WalkAction extends VolumeAction {
  readonly end = 'applied'
  readonly #options: Options

  constructor(node: PowerNode, options: Options = WALK) {
    super(node)
    this.#options = options
  }

  async run(): Promise<void> {
    await this.mount(this.#options)
    this.applied = snapshot(this.node.source)
  }
}

/** Nothing of the volume may change. */
class MappedAction extends VolumeAction {
  readonly end = 'original'

  override async prepare(): Promise<void> {
    await super.prepare()
    this.applied = this.original
  }

  async run(): Promise<void> {
    await this.mount({ ownership: 'idmap' })
    await this.unmount()
  }
}

/** The volume's root has the set-gid bit while it is mounted. */
class MappedRootAction extends VolumeAction {
  readonly end = 'original'

  override async prepare(): Promise<void> {
    await super.prepare()
    const { '.': root } = this.original
    if (root === undefined) throw new Error('the snapshot has no root')
    this.applied = { ...this.original, '.': { ...root, mode: root.mode.replace(/^0/, '2') } }
  }

  async run(): Promise<void> {
    await this.makeNextCalls()
  }

  override async makeNextCalls(): Promise<void> {
    await this.mount({ ownership: 'idmap', setGid: 'root' })
    // Otherwise the bit is removed before any disk has it.
    this.node.sync()
    await this.unmount()
    this.assertVolume('after the mapped mount', this.original)
  }

  /** The bit has a record of its own, which gc applies. */
  override restore(): void {
    this.runCommand('gc')
    super.restore()
  }
}

/** A person's command, to whose result later pods return. It rewrites the journal. */
class ApplyAction extends VolumeAction {
  readonly end = 'applied'

  async run(): Promise<void> {
    this.runCommand('apply', this.node.source, '--fsgroup', String(GROUP))
    this.applied = snapshot(this.node.source)
  }

  override async makeNextCalls(): Promise<void> {
    this.runCommand('apply', this.node.source, '--fsgroup', String(GROUP))
    this.assertVolume('after the next apply', this.applied)
  }
}

class RestoreAction extends VolumeAction {
  readonly end = 'original'

  override async prepare(): Promise<void> {
    await super.prepare()
    await this.mount(WALK)
    this.applied = snapshot(this.node.source)
    await this.unmount()
  }

  async run(): Promise<void> {
    this.restore()
  }
}

class RestoreOnUnmountAction extends VolumeAction {
  readonly end = 'original'

  override async prepare(): Promise<void> {
    await super.prepare()
    await this.mount({ ...WALK, restoreOnUnmount: 'true' })
    this.applied = snapshot(this.node.source)
  }

  async run(): Promise<void> {
    await this.unmount()
  }
}

// A journal is compacted when it has a MiB more than the inodes need. A record has the path.
const DELETED_FILES = 5000
const LONG_NAME = 'x'.repeat(240)
const MAX_COMPACTED_BYTES = 1 << 20

/** A walk that compacts the journal, because most inodes were deleted since the last walk. */
class CompactionAction extends VolumeAction {
  readonly end = 'applied'

  override async prepare(): Promise<void> {
    await super.prepare()
    const deleted = `${this.node.source}/deleted`
    fs.mkdirSync(deleted)
    for (let n = 0; n < DELETED_FILES; n++) fs.writeFileSync(`${deleted}/${n}${LONG_NAME}`, '')
    await this.mount(WALK)
    await this.unmount()
    fs.rmSync(deleted, { recursive: true })
    this.applied = snapshot(this.node.source)
    if (this.#measureJournal() <= MAX_COMPACTED_BYTES) throw new Error('the journal is too small to be compacted')
  }

  async run(): Promise<void> {
    await this.mount({ ...WALK, fsGroupChangePolicy: 'Always' })
    if (this.#measureJournal() > MAX_COMPACTED_BYTES) throw new Error('the journal was not compacted')
  }

  #measureJournal(): number {
    const journals = fs.globSync(`${this.node.stateDirectory}/ownership/*/journal.db`)
    return Math.max(0, ...journals.map((file) => fs.statSync(file).size))
  }
}

const PLUGIN_DIRECTORY = '/var/lib/kubelet/volumeplugins'
const OLD_MARK = 'old'
const NEW_MARK = 'new'

/** Installs a driver in a system on the volume's disk. */
class InstallAction implements PowerAction {
  readonly #node: PowerNode
  readonly #isUpgrade: boolean
  readonly #root: string

  constructor(node: PowerNode, isUpgrade: boolean) {
    this.#node = node
    this.#isUpgrade = isUpgrade
    this.#root = `${node.volumes}/root`
  }

  async prepare(): Promise<void> {
    fs.mkdirSync(this.#root)
    for (const version of [OLD_MARK, NEW_MARK]) this.#writeDriver(version)
    if (this.#isUpgrade) this.#install(OLD_MARK)
  }

  async run(): Promise<void> {
    this.#install(NEW_MARK)
  }

  async check(isEnded: boolean): Promise<void> {
    const found = this.#findInstalled()
    const allowed = isEnded ? [NEW_MARK] : [NEW_MARK, this.#isUpgrade ? OLD_MARK : 'none']
    if (!allowed.includes(found)) throw new MomentFailure(`${found} is installed instead of ${allowed.join(' or ')}`, 1)
    this.#install(NEW_MARK)
    const after = this.#findInstalled()
    if (after !== NEW_MARK) throw new MomentFailure(`${after} is installed after the next install`, 1)
  }

  /** A script whose reply is at its end, so an incomplete copy gives none. */
  #writeDriver(version: string): void {
    const padding = `# ${'x'.repeat(1000)}\n`.repeat(200)
    const reply = JSON.stringify({ status: 'Success', version })
    fs.writeFileSync(this.#locateDriver(version), `#!/bin/sh\n${padding}printf '%s\\n' '${reply}'\n`, { mode: 0o755 })
  }

  #locateDriver(version: string): string {
    return `${this.#node.top}/driver-${version}`
  }

  #install(version: string): void {
    const options = ['--root', this.#root, '--plugin-dir', PLUGIN_DIRECTORY, '--binary', this.#locateDriver(version)]
    const { exitCode, stdout, stderr } = this.#node.runCommand('install', ...options)
    if (exitCode !== 0) throw new MomentFailure(`the install failed: ${stdout}${stderr}`, 0)
  }

  #findInstalled(): string {
    const directory = `${this.#root}${PLUGIN_DIRECTORY}/modekeep~fs`
    if (!fs.existsSync(directory)) return 'none'
    if (!fs.existsSync(`${directory}/fs`)) return 'a directory without a driver'
    const bytes = fs.readFileSync(`${directory}/fs`)
    const isComplete = (version: string) => bytes.equals(fs.readFileSync(this.#locateDriver(version)))
    const mode = fs.statSync(`${directory}/fs`).mode & 0o7777
    if (mode !== 0o755) return `a driver of mode ${mode.toString(8)}`
    return [OLD_MARK, NEW_MARK].find(isComplete) ?? `an incomplete driver of ${bytes.length} bytes`
  }
}

const CREATE_ACTION = {
  walk: (node: PowerNode) => new WalkAction(node),
  grant: (node: PowerNode) => new WalkAction(node, { ...WALK, groupAccess: 'grant' }),
  idmap: (node: PowerNode) => new MappedAction(node),
  'idmap with setGid': (node: PowerNode) => new MappedRootAction(node),
  apply: (node: PowerNode) => new ApplyAction(node),
  restore: (node: PowerNode) => new RestoreAction(node),
  restoreOnUnmount: (node: PowerNode) => new RestoreOnUnmountAction(node),
  compaction: (node: PowerNode) => new CompactionAction(node),
  'first install': (node: PowerNode) => new InstallAction(node, false),
  upgrade: (node: PowerNode) => new InstallAction(node, true),
}

export type ActionName = keyof typeof CREATE_ACTION

export function createAction(name: ActionName, node: PowerNode): PowerAction {
  return CREATE_ACTION[name](node)
}
