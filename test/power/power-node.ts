import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { parseMountinfo } from '../../src/kernel/mount-table/mountinfo.ts'
import { listLeftLoopDevices } from '../helpers/disks.ts'
import { requireProgram } from '../helpers/needs.ts'
import { BINARY, NodeDirectory } from '../helpers/node-directory.ts'
import type { PowerCut } from './disk-log.ts'
import { DiskRecorder } from './recorder.ts'

export type FsType = 'ext4' | 'xfs' | 'btrfs'
/** Which disk has the state directory: the volume's, or an ext4 disk of its own. */
export type StateDisk = 'the same disk' | 'another disk'

const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** Nothing is discarded, because a discard is not in the log. The file system writes nothing by itself. */
const MKFS: Readonly<Record<FsType, readonly string[]>> = {
  ext4: ['-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0,nodiscard'],
  xfs: ['-q', '-f', '-K'],
  btrfs: ['-q', '-f', '-K'],
}
const IMAGE_SIZES: Readonly<Record<FsType, string>> = { ext4: '64M', xfs: '300M', btrfs: '128M' }
/** The file system commits by itself only after so many seconds, so a write that was not synced is lost. */
const MOUNT_OPTIONS: Readonly<Record<FsType, string>> = {
  ext4: 'loop,commit=600',
  xfs: 'loop',
  btrfs: 'loop,commit=300,nodiscard',
}

/** Few open files allow few inodes in a batch of a walk. */
const FEW_HANDLES = 256
const UNMOUNT_TRIES = 100

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })

interface NodeDisk {
  name: string
  fsType: FsType
  directory: string
}

export interface CommandResult {
  exitCode: number | null
  stdout: string
  stderr: string
}

/** A node whose volumes and state are on recorded disks. */
export class PowerNode extends NodeDirectory {
  readonly source = `${this.volumes}/data`
  readonly disks: readonly NodeDisk[]
  readonly stateDirectory: string
  #recorder: DiskRecorder | undefined
  #hasOwnBootId = false

  constructor(fsType: FsType, stateDisk: StateDisk) {
    super()
    const volume: NodeDisk = { name: 'volume.img', fsType, directory: this.volumes }
    const state: NodeDisk = { name: 'state.img', fsType: 'ext4', directory: this.state }
    this.disks = stateDisk === 'another disk' ? [volume, state] : [volume]
    this.stateDirectory = stateDisk === 'another disk' ? this.state : `${this.volumes}/state`
    this.configure({
      stateDir: this.stateDirectory,
      allow: [{ sources: [`${this.volumes}/*`], setGid: 'root' }],
    })
  }

  /** Makes the file systems and mounts them. */
  async makeDisks(): Promise<void> {
    for (const { name, fsType, directory } of this.disks) {
      fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
      run('truncate', '-s', IMAGE_SIZES[fsType], `${this.top}/${name}`)
      run(requireProgram(`mkfs.${fsType}`), ...MKFS[fsType], `${this.top}/${name}`)
    }
    const images = this.disks.map(({ name }) => [name, `${this.top}/${name}`])
    this.#recorder = await DiskRecorder.start(`${this.top}/served`, Object.fromEntries(images))
    this.#mountDisks()
    for (const { name, directory } of this.disks) fs.chmodSync(directory, name === 'state.img' ? 0o700 : 0o755)
  }

  get recorder(): DiskRecorder {
    if (this.#recorder === undefined) throw new Error('the node has no disks')
    return this.#recorder
  }

  /** Makes all earlier writes durable. */
  sync(order: 'volume first' | 'state first' = 'volume first'): void {
    const disks = order === 'state first' ? this.disks.toReversed() : this.disks
    for (const { directory } of disks) run('sync', '--file-system', directory)
  }

  /**
   * Runs an action while other processes sync the volume's file system all the time, so each change may be durable
   * before anything else is. The calls of the action record few inodes at once.
   */
  async runWhileVolumeCommits(action: () => Promise<void>): Promise<void> {
    const loop = 'while sync --file-system "$1"; do :; done'
    const syncs = spawn('setpriv', ['--pdeathsig', 'KILL', 'sh', '-c', loop, 'sh', this.volumes], {
      stdio: 'ignore',
      detached: true,
    })
    const closed = once(syncs, 'close')
    this.wrapper = ['prlimit', `--nofile=${FEW_HANDLES}:${FEW_HANDLES}`]
    try {
      await action()
    } finally {
      this.wrapper = []
      if (syncs.pid !== undefined) process.kill(-syncs.pid, 'SIGKILL')
      await closed
    }
  }

  /** Cuts the power at a moment of the recorded run and starts the node again. */
  rebootAfter(cut: PowerCut): void {
    this.unmountDisks()
    this.recorder.run({ do: 'show', cut })
    this.#changeBootId()
    this.#mountDisks()
  }

  /** Ends everything that the node's power ends. What it still writes is not part of the log. */
  unmountDisks(): void {
    for (const point of this.#listMountPoints(`${this.top}/pods/`)) run('umount', point)
    for (const { directory } of this.disks) if (this.#listMountPoints(directory).length > 0) unmountIdle(directory)
    const left = listLeftLoopDevices(`${this.top}/served`)
    if (left.length > 0) throw new Error(`loop devices are left: ${left.join('; ')}`)
    // Before Linux 6.9 a btrfs that was mounted remains known with its latest generation, and an older one is refused.
    if (this.disks.some(({ fsType }) => fsType === 'btrfs')) spawnSync('btrfs', ['device', 'scan', '--forget'])
  }

  /** The mount points below a directory or at it, the deepest first. */
  #listMountPoints(directory: string): string[] {
    const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
    const points = rows.map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(directory))
    return points.sort().reverse()
  }

  #mountDisks(): void {
    for (const { name, fsType, directory } of this.disks) {
      run('mount', '-t', fsType, '-o', MOUNT_OPTIONS[fsType], `${this.top}/served/${name}`, directory)
    }
  }

  #changeBootId(): void {
    const file = `${this.top}/boot-id`
    fs.writeFileSync(file, `${randomUUID()}\n`)
    if (!this.#hasOwnBootId) run('mount', '--bind', file, BOOT_ID)
    this.#hasOwnBootId = true
  }

  /** Runs a command of a person. */
  runCommand(...args: string[]): CommandResult {
    const env = { PATH: process.env.PATH, ...this.environment() }
    const [program = '', ...rest] = [...this.wrapper, BINARY, ...args]
    const { status, stdout, stderr } = spawnSync(program, rest, { env, encoding: 'utf8' })
    return { exitCode: status, stdout, stderr }
  }

  async stop(): Promise<void> {
    if (this.#hasOwnBootId) run('umount', BOOT_ID)
    try {
      if (this.#recorder !== undefined) this.unmountDisks()
    } finally {
      // What could not be unmounted is unmounted lazily. The recorder's server still has to answer then.
      for (const point of this.#listMountPoints(`${this.top}/`)) {
        if (point !== `${this.top}/served`) run('umount', '--lazy', point)
      }
      await this.#recorder?.stop()
      this.close()
    }
  }
}

/** A process that just ended may still have the file system in use. */
function unmountIdle(directory: string): void {
  for (let tried = 1; ; tried++) {
    const { status, stderr } = spawnSync('umount', [directory], { encoding: 'utf8' })
    if (status === 0) return
    if (tried === UNMOUNT_TRIES) throw new Error(stderr)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
}
