import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { describe } from 'vitest'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import type { AllowRule } from '../../src/config/rule.ts'
import { type NodeDirectoryVolume, openNodeDirectoryVolume } from '../../src/fsgroup/volume-by-hand.ts'
import type { Host } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { type MountRow, readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { healMounts } from '../../src/repair/heal.ts'
import type { MountFinding } from '../../src/repair/state.ts'
import type { Session } from '../../src/state/session.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'
import { listLeftLoopDevices } from './disks.ts'
import { requireProgram } from './needs.ts'
import { sized, UNIT } from './size.ts'
import { type Listed, listTree } from './tree.ts'

/** A node to play kubelet on: the same cases run in memory and on the kernel's file systems. */
export interface Stage {
  host: Host
  fs: typeof fs
  /** Below it everything of the test lies. */
  top: string
  config: NodeConfig
  /** What the last call noted for its log line. */
  noted: Record<string, unknown>
  warnings: string[]
  /** Threads for walks; none unless a test asks for them. */
  /** A mount directory as kubelet makes it. */
  podDirectory(pod: string): string
  mount(pod: string, options: Record<string, string>): Promise<void>
  /** @returns the message of a success */
  unmount(pod: string): Promise<string | undefined>
  heal(isDry?: boolean): Promise<MountFinding[]>
  /** As an operator's verb works on a directory. */
  byHand<T>(directory: string, work: (session: Session, opened: NodeDirectoryVolume) => Promise<T>): Promise<T>
  session(): Session
  /** Has the node's one rule say this besides what it says. */
  allow(rule: AllowRule): void
  layers(pod: string): MountRow[]
  /** What the pod's directory shows. */
  shown(pod: string): Record<string, Listed>
  /** Mounts are gone, files and state stay, the boot has another id. */
  reboot(): void
  /** Undefined on the kernel. */
  world: MemoryWorld | undefined
  close(): void
}

export const isRoot = process.getuid?.() === 0

function stageOn(host: Host, over: typeof fs, top: string, world: MemoryWorld | undefined): Stage {
  over.mkdirSync(`${top}/volumes`, { recursive: true })
  let boot = host.bootId()
  const pods = new Set<string>()
  const stage: Stage = {
    host: { ...host, bootId: () => (world ? world.boot : boot) },
    fs: over,
    top,
    config: {
      ...DEFAULT_CONFIG,
      stateDir: `${top}/state`,
      // Its volumes have groups of the system, and everybody reaches them.
      allow: [{ sources: [`${top}/volumes/*`], systemGroups: true }],
    },
    noted: {},
    warnings: [],
    podDirectory: (pod) => `${top}/pods/${pod}/volumes/modekeep~fs/v`,

    async mount(pod, options) {
      const directory = stage.podDirectory(pod)
      pods.add(pod)
      // A subPath may have left a file there.
      if (!over.existsSync(directory)) over.mkdirSync(directory, { recursive: true })
      const request = parseFlexVolumeRequest(directory, JSON.stringify(options), stage.config, volumeKindLookup)
      await mountPodVolume(session(stage), request)
    },

    unmount: (pod) => unmountPodVolume(session(stage), stage.podDirectory(pod)),
    session: () => session(stage),
    allow(rule) {
      stage.config = { ...stage.config, allow: [{ ...stage.config.allow[0], ...rule }] }
    },
    async byHand(directory, work) {
      const opened = await openNodeDirectoryVolume(session(stage), directory, { set: 0, clear: 0 })
      try {
        return await work(session(stage), opened)
      } finally {
        stage.host.inodes.close(opened.tree)
      }
    },
    heal: (isDry = false) => healMounts(session(stage), isDry),
    shown: (pod) => (world ? shownIn(world, stage.podDirectory(pod)) : listTree(over, stage.podDirectory(pod))),
    layers: (pod) => readMountLayers(host, stage.podDirectory(pod)),

    reboot() {
      if (world) world.reboot()
      boot = `${boot}-again`
      for (const pod of pods) unmountAll(stage, pod)
    },

    world,
    close() {
      for (const pod of pods) unmountAll(stage, pod)
    },
  }
  return stage
}

function session(stage: Stage): Session {
  stage.noted = {}
  return {
    host: stage.host,
    config: stage.config,
    note: (facts) => Object.assign(stage.noted, facts),
    warn: (message) => stage.warnings.push(message),
  }
}

function shownIn(world: MemoryWorld, directory: string): Record<string, Listed> {
  const { mount, path } = world.cross({ mount: world.rootMount, path: directory })
  return listTree(mount.fileSystem.fs as unknown as typeof fs, path)
}

function unmountAll(stage: Stage, pod: string): void {
  if (stage.world) return
  for (const _ of stage.layers(pod)) execFileSync('umount', ['-l', stage.podDirectory(pod)])
}

export function memoryStage(): Stage {
  const world = new MemoryWorld()
  return stageOn(memoryHost(world), world.fs as unknown as typeof fs, '/node', world)
}

/** A stage on a real file system of its own. Root and a private mount namespace are needed. */
export function kernelStage(fsType: 'tmpfs' | 'ext4'): Stage {
  const base = fs.mkdtempSync(`${tmpdir()}/modekeep-stage-`)
  const top = `${base}/node`
  // The users of a volume reach it through here.
  fs.chmodSync(base, 0o755)
  fs.mkdirSync(top)
  if (fsType === 'tmpfs') execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'stage', top])
  else {
    execFileSync('truncate', ['-s', '64M', `${base}/image`])
    execFileSync(requireProgram('mkfs.ext4'), ['-q', '-F', `${base}/image`])
    execFileSync('mount', ['-o', 'loop', `${base}/image`, top])
  }
  const stage = stageOn(linuxHost, fs, top, undefined)
  const unmountPods = stage.close
  stage.close = () => {
    unmountPods()
    unmountStage(top)
    fs.rmSync(dirname(top), { recursive: true, force: true })
  }
  return stage
}

/** The file of an image stays open as long as its loop device, which may go a moment after its mount. */
function unmountStage(top: string): void {
  try {
    execFileSync('umount', [top], { stdio: 'pipe' })
  } catch {
    listLeftLoopDevices(top)
    execFileSync('umount', [top])
  }
}

const onKernel = (fsType: 'tmpfs' | 'ext4'): [string, () => Stage] => [`on ${fsType}`, () => kernelStage(fsType)]
const KERNEL = sized([onKernel('ext4')], [onKernel('tmpfs'), onKernel('ext4')])
const STAGES: typeof KERNEL = [['in memory', memoryStage], ...(UNIT ? [] : KERNEL)]

/** Runs cases on every stage; those on the kernel need root, and say so. */
export function onEveryStage(name: string, cases: (open: () => Stage) => void, stages = STAGES): void {
  for (const [where, open] of stages) {
    const skip = where !== 'in memory' && !isRoot
    const title = skip ? `${name}, ${where} (skipped: mounts need root; run "sudo npm test")` : `${name}, ${where}`
    describe.skipIf(skip)(title, () => cases(open))
  }
}

/** For what memfs has no notion of: an inode that lives on while its path is gone, byte names, races. */
export function onKernelStages(name: string, cases: (open: () => Stage) => void): void {
  onEveryStage(name, cases, KERNEL)
}
