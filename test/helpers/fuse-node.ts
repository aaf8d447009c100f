import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import type { MountStatus } from '../../src/cli/commands/status-document.ts'
import { BINARY, BinaryNode } from './kubelet-call.ts'
import { cannotMountWith, requireProgram } from './needs.ts'

/** Why no FUSE volume can be mounted here, empty where one can. */
export function cannotServe(...programs: string[]): string {
  const why = cannotMountWith(...programs)
  return why === '' && !fs.existsSync('/dev/fuse') ? 'needs /dev/fuse: load the kernel module fuse' : why
}

type Options = Record<string, string>

/** A node that allows FUSE programs. Daemons that a test leaves are ended with it. */
export class FuseNode extends BinaryNode {
  readonly config: string
  readonly #directories = new Set<string>()

  constructor(allowed: readonly string[], sources: readonly string[] = []) {
    super()
    this.config = `${this.top}/config.json`
    const config = {
      stateDir: this.state,
      logFile: this.log,
      allow: [{ sources: [`${this.volumes}/*`, ...sources], fsTypes: ['bind', ...allowed] }],
      helperTimeoutSeconds: 30,
    }
    fs.writeFileSync(this.config, JSON.stringify(config))
    onTestFinished(() => {
      for (const pid of this.processes()) process.kill(pid, 'SIGKILL')
    })
  }

  /** Asks nothing of a daemon that may hang. */
  override podDirectory(pod: string): string {
    const directory = `${this.top}/pods/${pod}/volumes/modekeep~fs/v`
    return this.#directories.has(directory) ? directory : this.#made(super.podDirectory(pod))
  }

  #made(directory: string): string {
    this.#directories.add(directory)
    return directory
  }

  mount(pod: string, options: Options) {
    return this.call('mount', this.podDirectory(pod), JSON.stringify(options))
  }

  unmount(pod: string) {
    return this.call('unmount', this.podDirectory(pod))
  }

  /** A command; it must end within a time limit. */
  byHand<T>(...args: string[]): T {
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: this.config }
    const { stdout, stderr } = spawnSync(BINARY, [...args, '--json'], { env, encoding: 'utf8', timeout: 600_000 })
    if (stdout === '') throw new Error(`${args.join(' ')} printed nothing: ${stderr}`)
    return JSON.parse(stdout)
  }

  status(pod: string): MountStatus | undefined {
    const { mounts } = this.byHand<{ mounts: MountStatus[] }>('status')
    return mounts.find(({ directory }) => directory === this.podDirectory(pod))
  }

  /** The process that serves a pod's mount. */
  daemon(pod: string): number {
    const pid = this.status(pod)?.daemon?.pid
    if (!pid) throw new Error('no daemon')
    return pid
  }

  heal(): { directory: string; state: string; action: string; reason: string }[] {
    return this.byHand<{ mounts: { directory: string; state: string; action: string; reason: string }[] }>('heal')
      .mounts
  }

  /** All processes that were started with a path of this node. */
  processes(): number[] {
    return fs.readdirSync('/proc').flatMap((name) => {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) return []
      try {
        return fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(`${this.state}/`) ? Number(name) : []
      } catch {
        return []
      }
    })
  }

  /** What lies in the staging directory. */
  staged(): string[] {
    return fs.existsSync(`${this.state}/staging`) ? fs.readdirSync(`${this.state}/staging`) : []
  }
}

/** Waits for what happens by itself. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** The kernel has heard of the death of a daemon only when its descriptors are closed. */
export async function killDaemon(node: FuseNode, pod: string): Promise<void> {
  process.kill(node.daemon(pod), 'SIGKILL')
  await until(() => readErrorAt(node.podDirectory(pod)) === 'ENOTCONN')
}

/** The error that stat of a path returns; '' for none. */
export function readErrorAt(path: string, look: (path: string) => unknown = fs.statSync): string {
  try {
    look(path)
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}

/** An image of a directory. */
export function squash(directory: string, image: string): void {
  execFileSync(requireProgram('mksquashfs'), [directory, image, '-quiet', '-no-progress'], { stdio: 'ignore' })
}
